#include "core/metadata.h"

#include <algorithm>
#include <boost/algorithm/hex.hpp>
#include <boost/json.hpp>
#include <boost/system/system_error.hpp>
#include <stdexcept>
#include <unordered_set>
#include <utility>

namespace executorch_tensorrt {
namespace {

namespace json = boost::json;
using Op = DimExpr::Op;

// Far more than an engine has: bindings are looked for by name.
constexpr std::size_t kMaxBindings = 4096;

// Boost.JSON reports a wrong type by throwing; parse_metadata() turns every exception into a Status.
[[noreturn]] void fail(const std::string& what) { throw std::invalid_argument(what); }

std::string text_or(const json::object& object, const char* key, std::string fallback) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? std::move(fallback) : json::value_to<std::string>(*value);
}

std::size_t index_at(const json::object& object, const char* key) {
  return json::value_to<std::size_t>(object.at(key));
}

std::vector<std::string> names_of(const std::vector<Binding>& bindings) {
  std::vector<std::string> names;
  names.reserve(bindings.size());
  for (const Binding& binding : bindings) {
    names.push_back(binding.name);
  }
  return names;
}

void read_bindings(const json::array& bindings, EngineMetadata& out) {
  if (bindings.size() > kMaxBindings) {
    fail(std::to_string(bindings.size()) + " bindings, allowed at most " + std::to_string(kMaxBindings));
  }
  std::unordered_set<std::string> seen;
  for (const json::value& entry : bindings) {
    const json::object& object = entry.as_object();
    Binding binding;
    binding.name = json::value_to<std::string>(object.at("name"));
    if (binding.name.empty()) {
      fail("a binding has an empty name");
    }
    if (!seen.insert(binding.name).second) {
      fail("binding '" + binding.name + "' occurs twice");
    }
    const std::string dtype = text_or(object, "dtype", "");
    binding.dtype = scalar_type_from_name(dtype);
    if (binding.dtype == ScalarType::kUnknown && !dtype.empty()) {
      fail("binding '" + binding.name + "' has dtype '" + dtype + "'");
    }
    (object.at("is_input").as_bool() ? out.inputs : out.outputs).push_back(std::move(binding));
  }
  if (out.outputs.empty()) {
    fail("the engine has no output");
  }
}

std::optional<std::size_t> index_of(const std::vector<Binding>& bindings, const std::string& name) {
  const auto found =
      std::find_if(bindings.begin(), bindings.end(), [&](const Binding& binding) { return binding.name == name; });
  return found == bindings.end() ? std::nullopt : std::optional<std::size_t>(found - bindings.begin());
}

void check_alias(const AliasedIo& alias, const EngineMetadata& metadata) {
  const std::string label = "output '" + alias.output + "' aliases input '" + alias.input + "'";
  if (!index_of(metadata.outputs, alias.output)) {
    fail(label + ": the engine has no such output");
  }
  if (!index_of(metadata.inputs, alias.input)) {
    fail(label + (index_of(metadata.outputs, alias.input) ? ": that is an output" : ": the engine has no such input"));
  }
  if (alias.kind != "kv_cache_update" && alias.kind != "user") {
    fail(label + ": got kind '" + alias.kind + "', allowed 'kv_cache_update', 'user'");
  }
  for (const AliasedIo& other : metadata.aliased_io) {
    if (other.output == alias.output) {
      fail(label + ": it aliases '" + other.input + "' as well");
    }
    if (other.input == alias.input) {
      fail(label + ": output '" + other.output + "' does so as well");
    }
  }
}

void read_aliases(const json::array& aliases, EngineMetadata& out) {
  for (const json::value& entry : aliases) {
    const json::object& object = entry.as_object();
    // Torch-TensorRT's reader has the same default.
    AliasedIo alias{json::value_to<std::string>(object.at("output")), json::value_to<std::string>(object.at("input")),
                    text_or(object, "kind", "kv_cache_update")};
    check_alias(alias, out);
    out.outputs[*index_of(out.outputs, alias.output)].aliased_input = index_of(out.inputs, alias.input);
    out.aliased_io.push_back(std::move(alias));
  }
}

// One binding, one argument, unless the record says otherwise.
void number_arguments(EngineMetadata& metadata) {
  for (std::vector<Binding>* bindings : {&metadata.inputs, &metadata.outputs}) {
    for (Binding& binding : *bindings) {
      binding.argument = metadata.num_arguments++;
    }
  }
}

void read_arguments_of(const json::array& numbers, std::vector<Binding>& bindings) {
  if (numbers.size() != bindings.size()) {
    fail("arguments for " + std::to_string(numbers.size()) + " bindings, there are " + std::to_string(bindings.size()));
  }
  for (std::size_t k = 0; k < bindings.size(); ++k) {
    bindings[k].argument.reset();
    if (!numbers[k].is_null()) {
      bindings[k].argument = json::value_to<std::size_t>(numbers[k]);
    }
  }
}

// Memory that an engine writes in place of one input is read as no other.
void check_written_arguments(const EngineMetadata& metadata) {
  for (const Binding& output : metadata.outputs) {
    if (!output.aliased_input || !metadata.inputs[*output.aliased_input].argument) {
      continue;
    }
    const Binding& written = metadata.inputs[*output.aliased_input];
    for (const Binding& input : metadata.inputs) {
      if (&input != &written && input.argument == written.argument) {
        fail("output '" + output.name + "' is written in place of input '" + written.name +
             "', whose argument is input '" + input.name + "' as well");
      }
    }
  }
}

// Inputs take the first arguments, in order, some of them several times; outputs the rest, or none.
void read_arguments(const json::object& object, EngineMetadata& metadata) {
  read_arguments_of(object.at("inputs").as_array(), metadata.inputs);
  read_arguments_of(object.at("outputs").as_array(), metadata.outputs);
  std::size_t next = 0;
  for (const Binding& binding : metadata.inputs) {
    if (!binding.argument) {
      continue;
    }
    if (*binding.argument > next) {
      fail("input '" + binding.name + "' is not the next argument or an earlier one");
    }
    next = std::max(next, *binding.argument + 1);
  }
  for (const Binding& binding : metadata.outputs) {
    if (binding.argument && *binding.argument != next++) {
      fail("output '" + binding.name + "' is not the next argument");
    }
  }
  metadata.num_arguments = next;
  check_written_arguments(metadata);
}

InputRanges read_ranges(const json::object& object) {
  const auto min = json::value_to<std::vector<std::int64_t>>(object.at("min"));
  const auto opt = json::value_to<std::vector<std::int64_t>>(object.at("opt"));
  const auto max = json::value_to<std::vector<std::int64_t>>(object.at("max"));
  if (min.size() != opt.size() || opt.size() != max.size()) {
    fail("min, opt and max of a profile differ in rank");
  }
  InputRanges ranges;
  for (std::size_t d = 0; d < min.size(); ++d) {
    ranges.push_back({min[d], opt[d], max[d]});
  }
  return ranges;
}

std::vector<ProfileRanges> read_profiles(const json::array& profiles) {
  std::vector<ProfileRanges> out;
  for (const json::value& profile : profiles) {
    ProfileRanges inputs;
    for (const json::value& input : profile.as_object().at("inputs").as_array()) {
      inputs.push_back(read_ranges(input.as_object()));
    }
    out.push_back(std::move(inputs));
  }
  return out;
}

Op operator_of(std::string_view name) {
  if (name == "add") return Op::kAdd;
  if (name == "mul") return Op::kMul;
  if (name == "floordiv") return Op::kFloorDiv;
  if (name == "mod") return Op::kMod;
  if (name == "min") return Op::kMin;
  if (name == "max") return Op::kMax;
  fail("operator '" + std::string(name) + "' in a dim expression");
}

// int | "s<k>" | [operator, operand, operand...]; the parser bounds the depth.
void append_terms(const json::value& value, std::vector<DimExpr::Term>& terms) {
  if (const json::array* list = value.if_array()) {
    const Op op = operator_of(list->at(0).as_string());
    for (std::size_t k = 1; k < list->size(); ++k) {
      append_terms((*list)[k], terms);
    }
    terms.push_back({op, static_cast<std::int64_t>(list->size()) - 1});
    return;
  }
  if (const json::string* symbol = value.if_string()) {
    const std::string name(*symbol);
    std::size_t read = 0;
    if (name.size() < 2 || name[0] != 's') {
      fail("symbol '" + name + "' in a dim expression");
    }
    const int number = std::stoi(name.substr(1), &read);
    if (read + 1 != name.size()) {
      fail("symbol '" + name + "' in a dim expression");
    }
    terms.push_back({Op::kSymbol, number});
    return;
  }
  terms.push_back({Op::kConstant, json::value_to<std::int64_t>(value)});
}

std::vector<ShapeProgram::Dims> read_shapes(const json::array& bindings, std::size_t expected) {
  if (bindings.size() != expected) {
    fail("shapes for " + std::to_string(bindings.size()) + " bindings, there are " + std::to_string(expected));
  }
  std::vector<ShapeProgram::Dims> shapes;
  for (const json::value& binding : bindings) {
    ShapeProgram::Dims dims;
    for (const json::value& dim : binding.as_array()) {
      std::vector<DimExpr::Term> terms;
      append_terms(dim, terms);
      dims.emplace_back(std::move(terms));
    }
    shapes.push_back(std::move(dims));
  }
  return shapes;
}

ShapeProgram read_shape_program(const json::object& object, const EngineMetadata& metadata,
                                const ProfileTable& profiles) {
  std::vector<SymbolSource> symbols;
  for (const json::value& entry : object.at("symbols").as_array()) {
    const json::object& symbol = entry.as_object();
    symbols.push_back({index_at(symbol, "input"), index_at(symbol, "dim"),
                       json::value_to<std::int64_t>(symbol.at("scale")),
                       json::value_to<std::int64_t>(symbol.at("offset"))});
  }
  const json::object& shapes = object.at("shapes").as_object();
  std::vector<ShapeProgram::Dims> inputs = read_shapes(shapes.at("inputs").as_array(), metadata.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].size() != profiles.ranges(0, i).size()) {
      fail("the shape of input '" + metadata.inputs[i].name + "' and its profiles differ in rank");
    }
  }
  Result<ShapeProgram> program = ShapeProgram::create(
      std::move(symbols), std::move(inputs), read_shapes(shapes.at("outputs").as_array(), metadata.outputs.size()));
  if (!program.ok()) {
    fail(program.status().message());
  }
  return std::move(*program);
}

std::string checked_id(std::string text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() > 64 || !std::all_of(text.begin(), text.end(), is_digit)) {
    fail("engine id '" + text + "'");
  }
  return text;
}

bool is_fixed(const ProfileTable& profiles, std::size_t input) {
  for (std::size_t p = 0; p < profiles.num_profiles(); ++p) {
    for (std::size_t d = 0; d < profiles.ranges(p, input).size(); ++d) {
      const DimRange& range = profiles.ranges(p, input)[d];
      if (range.min != range.max || range.min != profiles.ranges(0, input)[d].min) {
        return false;
      }
    }
  }
  return true;
}

void check_owned_output(const OwnedBuffer& owned, const EngineMetadata& metadata, const ExportRecord& record) {
  const auto is_in_place = [&](const Binding& output) { return output.aliased_input == owned.input; };
  const auto has_it = [&](const OwnedBuffer& other) { return other.output == owned.output; };
  if (!owned.output || metadata.outputs[*owned.output].argument || metadata.outputs[*owned.output].aliased_input ||
      std::any_of(record.state.begin(), record.state.end(), has_it)) {
    fail("buffer '" + owned.name + "' has no output of its own");
  }
  if (std::any_of(metadata.outputs.begin(), metadata.outputs.end(), is_in_place)) {
    fail("buffer '" + owned.name + "' has an output, and is written in place as well");
  }
}

// The engine owns the memory of exactly those inputs that are no arguments.
void read_state(const json::array& entries, const EngineMetadata& metadata, ExportRecord& record) {
  for (const json::value& entry : entries) {
    const json::object& object = entry.as_object();
    OwnedBuffer owned;
    owned.name = json::value_to<std::string>(object.at("name"));
    const std::string label = "buffer '" + owned.name + "'";
    const std::optional<std::size_t> input = index_of(metadata.inputs, json::value_to<std::string>(object.at("input")));
    if (!input || metadata.inputs[*input].argument) {
      fail(label + " is no input of the engine's own");
    }
    const auto same = [&](const OwnedBuffer& other) { return other.name == owned.name || other.input == *input; };
    if (std::any_of(record.state.begin(), record.state.end(), same)) {
      fail(label + " occurs twice");
    }
    if (!record.profiles || !is_fixed(*record.profiles, *input)) {
      fail(label + " has no fixed shape");
    }
    owned.input = *input;
    if (const json::value* output = object.if_contains("output")) {
      owned.output = index_of(metadata.outputs, json::value_to<std::string>(*output));
      check_owned_output(owned, metadata, record);
    }
    boost::algorithm::unhex(text_or(object, "initial", ""), std::back_inserter(owned.initial));
    record.state.push_back(std::move(owned));
  }
}

void check_owned(const EngineMetadata& metadata, const ExportRecord& record) {
  for (std::size_t i = 0; i < metadata.inputs.size(); ++i) {
    const auto owns = [&](const OwnedBuffer& owned) { return owned.input == i; };
    if (!metadata.inputs[i].argument && std::none_of(record.state.begin(), record.state.end(), owns)) {
      fail("input '" + metadata.inputs[i].name + "' is neither an argument nor the engine's own");
    }
  }
}

ExportRecord read_record(const json::object& object, EngineMetadata& metadata) {
  const auto version = json::value_to<std::int64_t>(object.at("version"));
  if (version != 1) {
    fail("record version " + std::to_string(version) + ", this library reads 1");
  }
  ExportRecord record{text_or(object, "engine_kind", ""),
                      checked_id(text_or(object, "engine_id", "")),
                      text_or(object, "builder", ""),
                      text_or(object, "signature", ""),
                      std::nullopt,
                      std::nullopt,
                      {}};
  if (const json::value* declared = object.if_contains("profiles")) {
    Result<ProfileTable> profiles =
        ProfileTable::create(names_of(metadata.inputs), read_profiles(declared->as_array()));
    if (!profiles.ok()) {
      fail(profiles.status().message());
    }
    record.profiles = std::move(*profiles);
  }
  if (const json::value* arguments = object.if_contains("arguments")) {
    read_arguments(arguments->as_object(), metadata);
  }
  if (const json::value* state = object.if_contains("state")) {
    read_state(state->as_array(), metadata, record);
  }
  check_owned(metadata, record);
  if (object.contains("shapes")) {
    if (!record.profiles) {
      fail("shapes without profiles");
    }
    record.shapes = read_shape_program(object, metadata, *record.profiles);
  }
  return record;
}

EngineMetadata read_metadata(std::string_view text) {
  const json::value root = json::parse(text);
  const json::object& object = root.as_object();
  EngineMetadata metadata;
  read_bindings(object.at("io_bindings").as_array(), metadata);
  number_arguments(metadata);
  if (const json::value* aliases = object.if_contains("aliased_io")) {
    read_aliases(aliases->as_array(), metadata);
  }
  if (const json::value* compatible = object.if_contains("hardware_compatible")) {
    metadata.hardware_compatible = compatible->as_bool();
  }
  if (const json::value* device = object.if_contains("device_id")) {
    metadata.device_id = json::value_to<int>(*device);
  }
  metadata.target_platform = text_or(object, "target_platform", "");
  if (const json::value* record = object.if_contains("executorch_tensorrt")) {
    metadata.record = read_record(record->as_object(), metadata);
  }
  return metadata;
}

}  // namespace

Result<EngineMetadata> parse_metadata(std::string_view text) {
  try {
    return read_metadata(text);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, "engine metadata does not fit memory");
  } catch (const boost::system::system_error& error) {
    // what() would name Boost's source files.
    return invalid_program("engine metadata is damaged: " + error.code().message());
  } catch (const std::exception& error) {
    return invalid_program(std::string("engine metadata is damaged: ") + error.what());
  }
}

}  // namespace executorch_tensorrt
