// ProgramParts: what the methods of a program refer to.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "verify/flat_table.h"

namespace executorch_tensorrt {

class ProgramParts {
 public:
  // Throws Damage, as all here.
  ProgramParts(const void* data, std::size_t size);

  const FlatTable& program() const { return program_; }

  // Before as many steps. Parts may be shared, so that a small file could unfold into any number of them.
  void spend(std::uint64_t steps) const;

  FlatBytes segment(std::uint64_t index) const;
  // From the begin of a constant tensor's data to the end of what it may read.
  FlatBytes constant(std::uint32_t index) const;
  // The same of the first values of a tensor that changes.
  FlatBytes initial_value(std::uint32_t index) const;
  // Data that delegates find by its name.
  FlatBytes named(std::string_view name) const;

 private:
  FlatBytes subsegment(const FlatTable& offsets, std::uint32_t index) const;
  void read_names();

  FlatBytes file_;
  std::uint64_t first_segment_ = 0;
  FlatTable program_;
  std::map<std::string_view, std::uint32_t> named_;  // segments; of several of one name the first
  mutable std::uint64_t room_;                       // for further steps
};

}  // namespace executorch_tensorrt
