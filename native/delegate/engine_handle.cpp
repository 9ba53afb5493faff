#include "delegate/engine_handle.h"

#include <cstring>
#include <exception>
#include <utility>

#include "delegate/backend.h"
#include "delegate/event_scope.h"
#include "process/profiling_control.h"
#include "process/thread_request.h"
#include "process/yielding_lock.h"

namespace executorch_tensorrt {

using executorch::runtime::EventTracer;

namespace {

// As an engine has a buffer of int64 whose TensorRT has none.
Status narrow(WantedBuffer& buffer) {
  constexpr std::size_t kWide = sizeof(std::int64_t);
  std::string initial;
  std::size_t at = 0;
  for (; at + kWide <= buffer.initial.size(); at += kWide) {
    std::int64_t wide = 0;
    std::memcpy(&wide, buffer.initial.data() + at, kWide);
    const auto narrowed = static_cast<std::int32_t>(wide);
    if (narrowed != wide) {
      return invalid_program("buffer '" + buffer.name + "' begins with " + std::to_string(wide) +
                             ", allowed are numbers of 32 bits, since this TensorRT has no int64");
    }
    initial.append(reinterpret_cast<const char*>(&narrowed), sizeof(narrowed));
  }
  initial.append(buffer.initial, at);  // none, or the size will be wrong
  buffer.dtype = ScalarType::kInt32;
  buffer.initial = std::move(initial);
  return {};
}

}  // namespace

EngineHandle::EngineHandle(std::string method, EngineMetadata metadata, DelegateOptions options)
    : method_(std::move(method)),
      metadata_(std::move(metadata)),
      options_(std::move(options)),
      failures_("method '" + method_ + "'" + (metadata_.record ? ", engine " + metadata_.record->engine_id : "")),
      calls_(metadata_, failures_) {}

EngineHandle::~EngineHandle() {
  if (!early_) {
    return;
  }
  const CudaDeviceScope scope(calls_.device()->cuda(), calls_.device()->device());
  calls_.wait();
  early_->has_layers = false;  // the stream may be gone
  try {
    settle_early_call();
  } catch (const std::exception&) {  // no memory: the call is lost to the trace
  }
}

Result<std::unique_ptr<EngineHandle>> EngineHandle::create(std::string method, const void* blob, std::size_t size,
                                                           DelegateOptions options) {
  const Result<BlobView> view = parse_blob(blob, size);
  if (!view.ok()) {
    return view.status();
  }
  Result<EngineMetadata> metadata = parse_metadata(view->metadata);
  if (!metadata.ok()) {
    return metadata.status();
  }
  std::unique_ptr<EngineHandle> handle(new EngineHandle(std::move(method), std::move(*metadata), std::move(options)));
  if (Status status = handle->load(*view); !status.ok()) {
    return status;
  }
  return handle;
}

Status EngineHandle::load(const BlobView& blob) {
  if (Status status = calls_.load(blob, metadata_, options_); !status.ok()) {
    return status;
  }
  apply_profiling(options_.profiling);
  // Last: what fails leaves no buffers behind in a state.
  return share_buffers();
}

Status EngineHandle::share_buffers() {
  if (!metadata_.record || metadata_.record->state.empty()) {
    return {};
  }
  buffers_ = current_engine_buffers();
  if (!buffers_) {
    buffers_ = std::make_shared<EngineBuffers>();
  }
  std::vector<WantedBuffer> wanted;
  for (const OwnedBuffer& owned : metadata_.record->state) {
    wanted.push_back(wanted_buffer(owned));
    const bool narrowed = calls_.engine().narrows_int64() && wanted.back().dtype == ScalarType::kInt64;
    if (Status status = narrowed ? narrow(wanted.back()) : Status(); !status.ok()) {
      return status;
    }
  }
  const Result<SharedBuffers> shared = buffers_->share(wanted);
  if (!shared.ok()) {
    return shared.status();
  }
  calls_.use_buffers(metadata_.record->state, shared->buffers);
  if (shared->order) {
    calls_.device()->share(shared->order);
  }
  return {};
}

WantedBuffer EngineHandle::wanted_buffer(const OwnedBuffer& owned) const {
  WantedBuffer wanted;
  wanted.name = owned.name;
  wanted.dtype = metadata_.inputs[owned.input].dtype;
  const InputRanges& ranges = calls_.engine().profiles().ranges(0, owned.input);
  wanted.shape.resize(ranges.size());
  for (std::size_t d = 0; d < wanted.shape.rank(); ++d) {
    wanted.shape[d] = ranges[d].max;
  }
  wanted.initial = owned.initial;
  wanted.device = calls_.engine().device();
  wanted.updated_in_place = !owned.output;
  return wanted;
}

// Changes nothing when it throws.
void EngineHandle::apply_profiling(ProfilingSettings settings) {
  std::unique_ptr<Sidecar> sidecar;
  if (settings.writes_sidecar()) {
    sidecar = std::make_unique<Sidecar>(settings, method_, engine_id(), std::string(calls_.engine().kind()));
  }
  sidecar_ = std::move(sidecar);  // the one before writes what it has
  profiling_ = std::move(settings);
  calls_.collect_layers(profiling_.level >= ProfileLevel::kLayers);
  if (!tracing_compiled_in() && profiling_.level != ProfileLevel::kOff && !profiling_.writes_sidecar()) {
    failures_.warn("events were asked for, but event tracing is not compiled in: build with -DETRT_EVENT_TRACING=ON");
  }
}

void EngineHandle::take_over_process_wide_profiling() {
  if (profiling_generation() == profiling_generation_) {
    return;
  }
  const ProfilingSnapshot snapshot = profiling_snapshot();
  const ProfilingSettings& settings = snapshot.settings ? *snapshot.settings : options_.profiling;
  if (!(settings == profiling_)) {
    apply_profiling(settings);
  }
  profiling_generation_ = snapshot.generation;
}

Status EngineHandle::execute(CallIo::Args args, EventTracer* tracer) {
  const std::unique_lock<std::mutex> lock = locked(mutex_, yields_);
  std::optional<CudaDeviceScope> scope;
  CallStream stream;
  if (StreamWork* device = calls_.device()) {
    scope.emplace(device->cuda(), device->device());
    if (!scope->status().ok()) {
      return scope->status();
    }
    const Result<CallStream> taken = CallStream::take(device->cuda());
    if (!taken.ok()) {
      return taken.status();
    }
    stream = *taken;
  }
  if (!stream.is_captured) {  // what might wait, or end contexts, is left to the next call
    settle_early_call();
    take_over_process_wide_profiling();
  }
  std::unique_lock<std::mutex> buffers_lock;  // before the call, which waits for its work when it ends
  if (buffers_) {
    buffers_lock = locked(buffers_->mutex, yields_);
  }
  CallRecord record;
  if (sidecar_) {
    record.phases.reserve(8);  // all that a call adds, so that no event's end allocates
  }
  if (profiling_.level == ProfileLevel::kOff) {
    tracer = nullptr;
  }
  EngineCall call{
      profiling_.level, {tracer, sidecar_ ? &record : nullptr}, current_request(), stream, {calls_.io(), args}};
  Status status;
  {
    EventScope event(call.at(ProfileLevel::kDelegate), kDelegateEvent);
    status = calls_.run(call);
    if (event.has_tracer()) {
      event.set_metadata(describe(call));
    }
  }
  early_device_ns_.reset();
  record.number = num_calls_++;
  if (sidecar_ || (call.returned_early && call.is_timed())) {
    keep_record(call, std::move(record), status);
  }
  if (status.ok()) {
    calls_.advance_buffers();  // last, so that a call that fails has not done it
  }
  return status;
}

void EngineHandle::keep_record(EngineCall& call, CallRecord record, const Status& status) {
  record.profile = call.profile;
  record.ok = status.ok();
  record.layers_dropped = call.layers_dropped;
  record.device_ns = call.device_ns;
  record.returned_early = call.returned_early;
  if (sidecar_) {
    record.request = to_string(call.request);
  }
  if (call.returned_early && call.is_timed()) {
    record.enqueue_start = call.enqueue_start;
    early_ = Early{std::move(record), call.has_layers};
  } else if (sidecar_) {
    sidecar_->add(std::move(record));
  }
}

// What is not done by now is lost to the trace.
void EngineHandle::settle_early_call() {
  if (!early_) {
    return;
  }
  Early early = std::move(*early_);
  early_.reset();
  EngineCalls::EarlyTimes times = calls_.take_early_times(early.record, early.has_layers);
  early_device_ns_ = times.device_ns;
  if (sidecar_) {
    early.record.device_ns = times.device_ns;
    early.record.layers = std::move(times.layers);
    sidecar_->add(std::move(early.record));
  }
}

const std::string& EngineHandle::engine_id() const {
  static const std::string none;
  return metadata_.record ? metadata_.record->engine_id : none;
}

std::string EngineHandle::describe(const EngineCall& call) const {
  std::string text;
  text.reserve(320);
  const auto add = [&text](const char* key, const std::string& value) { text.append(key).append(value); };
  // No value needs escaping: parse_metadata() refuses other engine ids than hexadecimal ones.
  text.append("{\"engine_kind\":\"").append(calls_.engine().kind());
  add("\",\"engine_id\":\"", engine_id());
  add("\",\"profile\":", std::to_string(call.profile));
  add(",\"request\":\"", to_string(call.request));
  text += "\",\"shapes\":[";
  const std::vector<Shape>& shapes = calls_.input_shapes();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    text += i > 0 ? ",[" : "[";
    for (std::size_t d = 0; d < shapes[i].rank(); ++d) {
      add(d > 0 ? "," : "", std::to_string(shapes[i][d]));
    }
    text += "]";
  }
  add("],\"clock\":\"host\",\"staged_bytes\":", std::to_string(call.staged_bytes));
  add(",\"layers_dropped\":", std::to_string(call.layers_dropped));
  if (call.device_ns) {
    add(",\"device_ns\":", std::to_string(*call.device_ns));
  }
  if (early_device_ns_) {
    add(",\"device_ns_of_last_call\":", std::to_string(*early_device_ns_));
  }
  if (call.replay) {
    text += ",\"replay\":true";
  }
  if (call.returned_early) {
    text += ",\"returned_early\":true";
  }
  if (call.stream.is_captured) {
    text += ",\"captured\":true";
  }
  return text += "}";
}

}  // namespace executorch_tensorrt
