#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/bindings.h"
#include "bindings/failure.h"
#include "core/blob.h"
#include "core/metadata.h"
#include "core/selection.h"
#include "engines/registry.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch_tensorrt {
namespace {

// The metadata and where the engine lies; no view into the caller's bytes.
struct Blob {
  std::string magic;
  std::size_t engine_offset;
  std::size_t engine_size;
  std::string json;
  EngineMetadata metadata;
  std::vector<std::string> engine_kinds;
};

// Whatever has a buffer, so that a mapped file is not copied.
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Blob read_blob(const Bytes& data) {
  const BlobView view = value_of(parse_blob(data.data(), data.size()));
  EngineMetadata metadata = value_of(parse_metadata(view.metadata));
  std::vector<std::string> kinds = value_of(engine_kinds_of(view, metadata));
  return {std::string(magic_of(view.format)),
          static_cast<std::size_t>(view.engine - data.data()),
          view.engine_size,
          std::string(view.metadata),
          std::move(metadata),
          std::move(kinds)};
}

nb::list ranges_to_list(const ProfileTable& table) {
  nb::list profiles;
  for (std::size_t p = 0; p < table.num_profiles(); ++p) {
    nb::list inputs;
    for (std::size_t i = 0; i < table.num_inputs(); ++i) {
      nb::list dims;
      for (const DimRange& range : table.ranges(p, i)) {
        dims.append(nb::make_tuple(range.min, range.opt, range.max));
      }
      inputs.append(dims);
    }
    profiles.append(inputs);
  }
  return profiles;
}

ProfileTable make_table(std::vector<std::string> names, const nb::list& profiles) {
  std::vector<ProfileRanges> ranges;
  for (nb::handle profile : profiles) {
    ProfileRanges inputs;
    for (nb::handle input : nb::cast<nb::list>(profile)) {
      InputRanges dims;
      for (nb::handle dim : nb::cast<nb::list>(input)) {
        const auto triple = nb::cast<nb::tuple>(dim);
        dims.push_back(
            {nb::cast<std::int64_t>(triple[0]), nb::cast<std::int64_t>(triple[1]), nb::cast<std::int64_t>(triple[2])});
      }
      inputs.push_back(std::move(dims));
    }
    ranges.push_back(std::move(inputs));
  }
  return value_of(ProfileTable::create(std::move(names), std::move(ranges)));
}

// make_shape() clamps ranks, and the core takes no negative dims: ExecuTorch has neither.
Shape checked_shape(const std::vector<std::int64_t>& dims) {
  if (dims.size() > kMaxRank || std::any_of(dims.begin(), dims.end(), [](std::int64_t dim) { return dim < 0; })) {
    refuse_value("a shape has at most " + std::to_string(kMaxRank) + " dims of 0 or more");
  }
  return make_shape(dims);
}

std::size_t select(const ProfileTable& table, const std::vector<std::vector<std::int64_t>>& shapes, Request request,
                   Request load_default) {
  if (shapes.size() != table.num_inputs()) {
    throw nb::value_error("one shape per input");
  }
  std::vector<Shape> inputs;
  for (const auto& dims : shapes) {
    inputs.push_back(checked_shape(dims));
  }
  return value_of(select_profile(table, inputs, request, load_default));
}

std::vector<std::vector<std::int64_t>> infer_output_shapes(const EngineMetadata& metadata,
                                                           const std::vector<std::vector<std::int64_t>>& shapes) {
  if (!metadata.record || !metadata.record->shapes || shapes.size() != metadata.inputs.size()) {
    throw nb::value_error("the metadata has no shapes for so many inputs");
  }
  std::vector<Shape> inputs;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(checked_shape(shapes[i]));
    names.push_back(metadata.inputs[i].name);
    if (inputs[i].rank() != metadata.record->profiles->ranges(0, i).size()) {
      refuse_value("input " + quoted(names[i]) + " has another rank");
    }
  }
  std::vector<Shape> outputs;
  if (Status status = metadata.record->shapes->infer(inputs, names, outputs); !status.ok()) {
    throw nb::value_error(status.message().c_str());
  }
  std::vector<std::vector<std::int64_t>> dims;
  for (const Shape& shape : outputs) {
    dims.emplace_back();
    for (std::size_t d = 0; d < shape.rank(); ++d) {
      dims.back().push_back(shape[d]);
    }
  }
  return dims;
}

}  // namespace

void bind_core(nb::module_& m) {
  nb::class_<Request>(m, "Request", "What the caller asks of one execution.")
      .def(nb::init<>(), "The default: what the method was loaded with, else profile 0.")
      .def_static("pinned", &Request::pinned, "index"_a)
      .def_static("auto", &Request::automatic)
      .def(
          "__eq__",
          [](const Request& a, const nb::object& b) { return nb::isinstance<Request>(b) && a == nb::cast<Request>(b); },
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Request& r) { return nb::hash(nb::make_tuple(static_cast<int>(r.kind), r.index)); })
      .def("__repr__", [](const Request& request) { return to_string(request); });
  nb::class_<ProfileTable>(m, "ProfileTable", "What each optimization profile of an engine accepts.")
      .def_static("create", &make_table,
                  nb::sig("def create(input_names: collections.abc.Sequence[str], "
                          "profiles: list[list[list[tuple[int, int, int]]]]) -> ProfileTable"),
                  "input_names"_a, "profiles"_a,
                  "From, per profile and input, a list of (min, opt, max) per dim. ValueError if they do not fit.")
      .def_prop_ro("profiles", &ranges_to_list, nb::sig("def profiles(self) -> list[list[list[tuple[int, int, int]]]]"))
      .def_prop_ro("is_static", &ProfileTable::is_static)
      .def("select", &select,
           nb::sig("def select(self, shapes: collections.abc.Sequence[collections.abc.Sequence[int]], "
                   "request: Request, load_default: Request = ...) -> int"),
           "shapes"_a, "request"_a, "load_default"_a = Request{},
           "The profile index for one shape per input. ValueError if no profile serves the request.");

  nb::class_<Binding>(m, "Binding")
      .def_ro("name", &Binding::name)
      .def_prop_ro("dtype", [](const Binding& b) { return std::string(to_string(b.dtype)); })
      .def_ro("argument", &Binding::argument, "Its place among the delegate's arguments, if it has one.");
  nb::class_<AliasedIo>(m, "AliasedIo")
      .def_ro("output", &AliasedIo::output)
      .def_ro("input", &AliasedIo::input)
      .def_ro("kind", &AliasedIo::kind);
  nb::class_<ExportRecord>(m, "ExportRecord", "What this project's exporter adds to the metadata.")
      .def_ro("engine_kind", &ExportRecord::engine_kind)
      .def_ro("engine_id", &ExportRecord::engine_id)
      .def_ro("builder", &ExportRecord::builder)
      .def_ro("signature", &ExportRecord::signature)
      .def_ro("profiles", &ExportRecord::profiles);
  nb::class_<EngineMetadata>(m, "EngineMetadata")
      .def_ro("inputs", &EngineMetadata::inputs)
      .def_ro("outputs", &EngineMetadata::outputs)
      .def_ro("num_arguments", &EngineMetadata::num_arguments, "Of the delegate: inputs, then outputs.")
      .def_ro("aliased_io", &EngineMetadata::aliased_io)
      .def_ro("hardware_compatible", &EngineMetadata::hardware_compatible)
      .def_ro("device_id", &EngineMetadata::device_id)
      .def_ro("target_platform", &EngineMetadata::target_platform)
      .def_ro("record", &EngineMetadata::record)
      .def("infer_output_shapes", &infer_output_shapes, "input_shapes"_a);
  nb::class_<Blob>(m, "Blob", "A delegate's engine blob, parsed.")
      .def_ro("magic", &Blob::magic)
      .def_ro("engine_offset", &Blob::engine_offset)
      .def_ro("engine_size", &Blob::engine_size)
      .def_prop_ro(
          "json", [](const Blob& blob) { return nb::bytes(blob.json.data(), blob.json.size()); },
          "The metadata as it is written.")
      .def_ro("metadata", &Blob::metadata)
      .def_ro("engine_kinds", &Blob::engine_kinds, "The engine is of one of these.");
  m.def("parse_blob", &read_blob, nb::sig("def parse_blob(data: bytes | memoryview) -> Blob"), "data"_a,
        "ValueError, naming what is damaged, if it is no engine blob.");
}

}  // namespace executorch_tensorrt
