#include "verify/parts.h"

#include <algorithm>

#include "core/text.h"

namespace executorch_tensorrt {
namespace {

// By the schema of ExecuTorch's programs, program.fbs.
enum ProgramField { kConstantBuffer = 2, kSegments = 4, kConstantSegment = 5, kMutableSegments = 6, kNamedData = 7 };
enum SegmentField { kOffset = 0, kSize = 1 };
enum OffsetsField { kSegmentIndex = 0, kOffsets = 1 };
enum NamedField { kKey = 0, kNamedSegment = 1 };

// Behind the root's offset and the file's identifier.
constexpr std::size_t kHeader = 8;
constexpr std::size_t kProgramSize = kHeader + 8;
constexpr std::size_t kFirstSegment = kHeader + 16;

// What an honest program takes is below one a byte: an instruction has more bytes than what is done for it once, and is
// followed again in loops alone.
constexpr std::uint64_t kStepsPerByte = 16;

}  // namespace

ProgramParts::ProgramParts(const void* data, std::size_t size)
    : file_{static_cast<const std::uint8_t*>(data), size}, room_(kStepsPerByte * size) {
  FlatBytes program = file_;
  if (size >= kHeader + 4 && std::memcmp(file_.data + kHeader, "eh00", 4) == 0) {
    program = file_.part(0, file_.read<std::uint64_t>(kProgramSize));
    first_segment_ = file_.read<std::uint64_t>(kFirstSegment);
  }
  program_ = FlatTable::root(program);
  const FlatTables segments = program_.tables(kSegments);
  for (std::size_t k = 0; k < segments.size(); ++k) {
    (void)segment(k);
  }
  read_names();
}

void ProgramParts::spend(std::uint64_t steps) const {
  require(steps <= room_, "it unfolds into more than a file of its size has");
  room_ -= steps;
}

void ProgramParts::read_names() {
  const FlatTables named = program_.tables(kNamedData);
  for (std::size_t k = 0; k < named.size(); ++k) {
    const std::string_view name = named[k].text(kKey);
    const auto index = named[k].number<std::uint32_t>(kNamedSegment);
    require(!name.empty(), "named data has no name");
    (void)segment(index);
    named_.emplace(name, index);
  }
}

FlatBytes ProgramParts::segment(std::uint64_t index) const {
  const FlatTables segments = program_.tables(kSegments);
  require(index < segments.size(), "a segment is named that there is not");
  const FlatTable segment = segments[index];
  const auto offset = segment.number<std::uint64_t>(kOffset);
  require(first_segment_ <= file_.size && offset <= file_.size - first_segment_, "a segment lies outside of its file");
  return file_.part(first_segment_ + offset, segment.number<std::uint64_t>(kSize));
}

FlatBytes ProgramParts::subsegment(const FlatTable& offsets, std::uint32_t index) const {
  const FlatBytes bytes = segment(offsets.number<std::uint32_t>(kSegmentIndex));
  const FlatNumbers<std::uint64_t> begins = offsets.numbers<std::uint64_t>(kOffsets);
  require(index < begins.size(), "data is named that there is not");
  require(begins[index] <= bytes.size, "data lies outside of its segment");
  return bytes.part(begins[index], bytes.size - begins[index]);
}

FlatBytes ProgramParts::constant(std::uint32_t index) const {
  const FlatTable offsets = program_.table(kConstantSegment);
  if (offsets.numbers<std::uint64_t>(kOffsets).size() > 1) {
    return subsegment(offsets, index);
  }
  const FlatTables buffers = program_.tables(kConstantBuffer);
  require(index < buffers.size(), "data is named that there is not");
  const FlatNumbers<std::uint8_t> storage = buffers[index].numbers<std::uint8_t>(0);
  return storage.bytes();
}

FlatBytes ProgramParts::initial_value(std::uint32_t index) const {
  const FlatTables segments = program_.tables(kMutableSegments);
  require(segments.size() > 0, "data is named that there is not");
  return subsegment(segments[0], index);
}

FlatBytes ProgramParts::named(std::string_view name) const {
  const auto found = named_.find(name);
  if (found == named_.end()) {
    throw Damage("data " + quoted(name) + " is named that there is not");
  }
  return segment(found->second);
}

}  // namespace executorch_tensorrt
