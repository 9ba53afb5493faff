// The delegate's handle over a fake engine: what is made when, what is set twice, what is left after a failure.
#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/platform/runtime.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <vector>

#include "delegate/engine_handle.h"
#include "executorch_tensorrt/optimization_profile_guard.h"
#include "executorch_tensorrt/profiling_control.h"
#include "fake_engine.h"
#include "guard_of.h"
#include "process/thread_request.h"

using namespace executorch_tensorrt;
using namespace executorch_tensorrt::testing;
using executorch::runtime::EValue;

namespace {

// A handle with one input and one output of up to 16 rows.
struct Fixture {
  explicit Fixture(ProfilingSettings profiling = {}, const std::string& metadata = kFakeMetadata)
      : blob(fake_blob(metadata)) {
    executorch::runtime::runtime_init();
    register_fake_engine();
    fake_log() = {};
    DelegateOptions options;
    options.profiling = std::move(profiling);
    auto created = EngineHandle::create("forward", blob.data(), blob.size(), options);
    BOOST_TEST_REQUIRE(created.ok());
    handle = std::move(*created);
  }

  Status run(int rows, executorch::runtime::EventTracer* tracer = nullptr) {
    const auto x = executorch::extension::from_blob(input.data(), {rows, 2});
    EValue in(*x);
    EValue out(*y);
    EValue* args[] = {&in, &out};
    return handle->execute({args, 2}, tracer);
  }

  std::string blob;
  std::vector<float> input = std::vector<float>(32, 7.0f);
  std::vector<float> output = std::vector<float>(32, 0.0f);
  executorch::extension::TensorPtr y = executorch::extension::from_blob(output.data(), {16, 2});
  std::unique_ptr<EngineHandle> handle;
};

// Counts what reaches a tracer.
class CountingETDump final : public executorch::etdump::ETDumpGen {
 public:
  CountingETDump() { create_event_block("Execute"); }
  ~CountingETDump() override { std::free(get_etdump_data().buf); }

  executorch::runtime::EventTracerEntry start_profiling_delegate(
      const char* name, executorch::runtime::DelegateDebugIntId index) override {
    started.emplace_back(name);
    return ETDumpGen::start_profiling_delegate(name, index);
  }
  void end_profiling_delegate(executorch::runtime::EventTracerEntry entry, const void* metadata,
                              std::size_t size) override {
    ++ended;
    ETDumpGen::end_profiling_delegate(entry, metadata, size);
  }
  void log_profiling_delegate(const char* name, executorch::runtime::DelegateDebugIntId index, et_timestamp_t start,
                              et_timestamp_t end, const void* metadata, std::size_t size) override {
    logged.emplace_back(name);
    ETDumpGen::log_profiling_delegate(name, index, start, end, metadata, size);
  }

  std::vector<std::string> started;
  std::size_t ended = 0;
  std::vector<std::string> logged;
};

ProfilingSettings tracing(ProfileLevel level) { return {level, ProfileFormat::kEtdump, ""}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_handle)

BOOST_AUTO_TEST_CASE(a_context_is_made_on_the_first_use_of_its_profile) {
  Fixture f;
  BOOST_TEST(fake_log().contexts == 0);
  BOOST_TEST(f.run(2).ok());
  BOOST_TEST(f.run(4).ok());
  BOOST_TEST(fake_log().contexts == 1);
  const OptimizationProfileGuard guard(1);
  BOOST_TEST(f.run(4).ok());
  BOOST_TEST(f.run(16).ok());
  BOOST_TEST(fake_log().contexts == 2);
}

BOOST_AUTO_TEST_CASE(a_steady_call_is_one_enqueue) {
  Fixture f;
  BOOST_TEST(f.run(2).ok());
  const FakeEngineLog first = fake_log();
  for (int k = 0; k < 5; ++k) {
    BOOST_TEST(f.run(2).ok());
  }
  BOOST_TEST(fake_log().enqueue == first.enqueue + 5);
  BOOST_TEST(fake_log().set_input_shape == first.set_input_shape);
  BOOST_TEST(fake_log().infer == first.infer);
  BOOST_TEST(fake_log().set_input_address == first.set_input_address);
  BOOST_TEST(fake_log().set_output_address == first.set_output_address);
}

BOOST_AUTO_TEST_CASE(alternating_profiles_set_nothing_twice) {
  Fixture f;
  const auto alternate = [&] {
    for (const int index : {0, 1}) {
      const OptimizationProfileGuard guard(index);
      BOOST_TEST(f.run(4).ok());
    }
  };
  alternate();
  const FakeEngineLog first = fake_log();
  for (int k = 0; k < 5; ++k) {
    alternate();
  }
  BOOST_TEST(fake_log().contexts == 2);
  BOOST_TEST(fake_log().set_input_shape == first.set_input_shape);
  BOOST_TEST(fake_log().set_output_address == first.set_output_address);
  BOOST_TEST(fake_log().enqueue == first.enqueue + 10);
}

BOOST_AUTO_TEST_CASE(a_file_with_one_profile_and_nothing_of_ours_runs_as_profile_0_does_and_never_switches) {
  const auto counts_of = [](Fixture& f) {
    for (const auto request : {Request{}, Request::pinned(0), Request::automatic()}) {
      const auto guard = guard_of(request);
      for (const int rows : {1, 4, 4, 2, 2}) {
        BOOST_TEST(f.run(rows).ok());
      }
    }
    const FakeEngineLog& log = fake_log();
    return std::array{log.contexts, log.set_input_shape,     log.infer, log.set_input_address, log.set_output_address,
                      log.enqueue,  log.contexts_with_layers};
  };
  Fixture two_profiles;
  const auto expected = counts_of(two_profiles);
  register_fake_engine("tensorrt", {*ProfileTable::create({"x"}, {{{{1, 2, 4}, {2, 2, 2}}}}), {}});
  Fixture old({}, R"({"io_bindings":[{"name":"x","is_input":true},{"name":"y","is_input":false}]})");
  BOOST_TEST((counts_of(old) == expected));
  BOOST_TEST(fake_log().contexts == 1);
  register_engine_runtime("tensorrt", nullptr);
}

BOOST_AUTO_TEST_CASE(a_new_shape_is_set_and_inferred_again) {
  Fixture f;
  BOOST_TEST(f.run(2).ok());
  BOOST_TEST(f.run(3).ok());
  BOOST_TEST(fake_log().infer == 2);
  BOOST_TEST(f.y->size(0) == 3);
}

BOOST_AUTO_TEST_CASE(nothing_is_touched_before_validation_has_passed) {
  Fixture f;
  BOOST_TEST(f.run(2).ok());
  const FakeEngineLog before = fake_log();
  f.output.assign(32, -1.0f);
  BOOST_TEST(!f.run(5).ok());
  {
    const OptimizationProfileGuard guard(9);
    BOOST_TEST(!f.run(2).ok());
  }
  BOOST_TEST(fake_log().set_input_shape == before.set_input_shape);
  BOOST_TEST(fake_log().set_input_address == before.set_input_address);
  BOOST_TEST(fake_log().enqueue == before.enqueue);
  BOOST_TEST(f.y->size(0) == 2);
  BOOST_TEST(f.output[0] == -1.0f);
}

BOOST_AUTO_TEST_CASE(an_output_that_does_not_fit_is_found_before_enqueue) {
  Fixture f;
  f.y = executorch::extension::from_blob(f.output.data(), {2, 2});
  const Status status = f.run(4);
  BOOST_TEST(status.message().find("output 'y': (4, 2) does not fit") != std::string::npos);
  BOOST_TEST(fake_log().enqueue == 0);
  BOOST_TEST(f.y->size(0) == 2);
}

BOOST_AUTO_TEST_CASE(every_failure_is_an_error_and_the_next_call_works) {
  for (const char* at : {"context", "shape", "infer", "input", "output", "enqueue"}) {
    Fixture f;
    for (const int rows : {2, 3}) {
      fake_log().fail_at = at;
      const Status status = f.run(rows);
      if (status.ok()) {
        BOOST_TEST(rows == 3);  // a context, or an address that has not changed, is not made or set again
      } else {
        BOOST_TEST(status.message() == std::string("fake failure at ") + at);
      }
      fake_log().fail_at = "";
      f.output.assign(32, 0.0f);
      BOOST_TEST(f.run(rows).ok());
      BOOST_TEST(f.output[static_cast<std::size_t>(rows) * 2 - 1] == 7.0f);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_context_that_failed_is_made_anew) {
  Fixture f;
  fake_log().fail_at = "enqueue";
  BOOST_TEST(!f.run(2).ok());
  fake_log().fail_at = "throw";
  BOOST_CHECK_THROW((void)f.run(2), std::runtime_error);  // the backend turns it into an error
  fake_log().fail_at = "";
  BOOST_TEST(f.run(2).ok());
  BOOST_TEST(fake_log().contexts == 3);
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_named) {
  Fixture f;
  EValue number(static_cast<std::int64_t>(3));
  EValue out(*f.y);
  EValue* args[] = {&number, &out};
  BOOST_TEST(f.handle->execute({args, 2}, nullptr).message() == "input 'x' is no tensor");
  BOOST_TEST(f.handle->execute({args, 1}, nullptr).message().find("got 1 arguments, allowed 2") == 0u);
  std::vector<std::int64_t> ints(4);
  const auto x = executorch::extension::from_blob(ints.data(), {2, 2}, executorch::aten::ScalarType::Long);
  EValue in(*x);
  args[0] = &in;
  BOOST_TEST(f.handle->execute({args, 2}, nullptr).message() == "input 'x': got dtype int64, allowed float32");
}

BOOST_AUTO_TEST_CASE(one_argument_serves_two_inputs_and_none_an_output_that_nobody_takes) {
  const std::string blob = fake_blob(
      R"({"io_bindings":[{"name":"a","is_input":true},{"name":"b","is_input":true},{"name":"unused","is_input":false},)"
      R"({"name":"y","is_input":false}],"executorch_tensorrt":{"version":1,"engine_kind":"fake","arguments":)"
      R"({"inputs":[0,0],"outputs":[null,1]}}})");
  register_fake_engine("fake", {*ProfileTable::create({"a", "b"}, {{{{1, 2, 4}}, {{1, 2, 4}}}}), {}});
  fake_log() = {};
  auto handle = EngineHandle::create("forward", blob.data(), blob.size(), {});
  BOOST_TEST_REQUIRE(handle.ok());
  std::vector<float> input = {1.0f, 2.0f};
  std::vector<float> output(4);
  const auto x = executorch::extension::from_blob(input.data(), {2});
  const auto y = executorch::extension::from_blob(output.data(), {4});
  EValue in(*x);
  EValue out(*y);
  EValue* args[] = {&in, &out};
  BOOST_TEST((*handle)->execute({args, 2}, nullptr).ok());
  BOOST_TEST(y->size(0) == 2);
  BOOST_TEST(output[1] == 2.0f);
  BOOST_TEST(fake_log().outputs_kept == 1);
  EValue* three[] = {&in, &in, &out};
  BOOST_TEST(!(*handle)->execute({three, 3}, nullptr).ok());
}

BOOST_AUTO_TEST_CASE(the_engine_is_freed_with_its_handle) {
  {
    Fixture f;
    BOOST_TEST(f.run(2).ok());
    BOOST_TEST(fake_log().engines_freed == 0);
  }
  BOOST_TEST(fake_log().engines_freed == 1);
}

BOOST_AUTO_TEST_CASE(levels_emit_the_events_that_they_name) {
  const std::pair<ProfileLevel, std::size_t> levels[] = {
      {ProfileLevel::kOff, 0}, {ProfileLevel::kDelegate, 1}, {ProfileLevel::kPhases, 7}, {ProfileLevel::kLayers, 7}};
  for (const auto& [level, events] : levels) {
    Fixture f(tracing(level));
    CountingETDump tracer;
    BOOST_TEST(f.run(2, &tracer).ok());
    BOOST_TEST(tracer.started.size() == events);
    BOOST_TEST(tracer.ended == events);
    BOOST_TEST(tracer.logged.size() == (level == ProfileLevel::kLayers ? 2u : 0u));
  }
}

BOOST_AUTO_TEST_CASE(events_are_closed_on_every_failing_path) {
  for (const char* at_step : {"context", "shape", "infer", "input", "output", "enqueue", "throw"}) {
    Fixture f(tracing(ProfileLevel::kPhases));
    CountingETDump tracer;
    fake_log().fail_at = at_step;
    try {
      BOOST_TEST(!f.run(2, &tracer).ok());
    } catch (const std::runtime_error&) {
      BOOST_TEST(std::string(at_step) == "throw");
    }
    BOOST_TEST(tracer.started.size() == tracer.ended);
    BOOST_TEST(tracer.started.front() == "torchtrt.delegate");
  }
}

BOOST_AUTO_TEST_CASE(repeated_layers_get_names_of_their_own) {
  Fixture f(tracing(ProfileLevel::kLayers));
  CountingETDump tracer;
  BOOST_TEST(f.run(2, &tracer).ok());
  BOOST_TEST((tracer.logged == std::vector<std::string>{"copy", "copy #1"}));
}

BOOST_AUTO_TEST_CASE(layers_are_attached_once_per_context) {
  Fixture f(tracing(ProfileLevel::kLayers));
  for (const int index : {0, 1, 0, 1}) {
    const OptimizationProfileGuard guard(index);
    BOOST_TEST(f.run(4).ok());
  }
  BOOST_TEST(fake_log().contexts == 2);
  BOOST_TEST(fake_log().contexts_with_layers == 2);
}

BOOST_AUTO_TEST_CASE(without_a_tracer_no_layer_is_collected) {
  Fixture f(tracing(ProfileLevel::kLayers));
  BOOST_TEST(f.run(2).ok());
  CountingETDump tracer;
  BOOST_TEST(f.run(2, &tracer).ok());
  BOOST_TEST(tracer.logged.size() == 2u);
}

BOOST_AUTO_TEST_CASE(process_wide_control_is_taken_over_by_the_next_call) {
  Fixture f;
  CountingETDump tracer;
  BOOST_TEST(f.run(2, &tracer).ok());
  BOOST_TEST((set_profiling("phases") == executorch::runtime::Error::Ok));
  BOOST_TEST(f.run(2, &tracer).ok());
  BOOST_TEST(tracer.started.size() == 7u);
  BOOST_TEST(fake_log().contexts == 1);
  BOOST_TEST((set_profiling("layers") == executorch::runtime::Error::Ok));
  BOOST_TEST(f.run(2, &tracer).ok());
  BOOST_TEST(fake_log().contexts == 2);
  clear_profiling();
  BOOST_TEST(f.run(2, &tracer).ok());
  BOOST_TEST(tracer.started.size() == 14u);
}

BOOST_AUTO_TEST_SUITE_END()
