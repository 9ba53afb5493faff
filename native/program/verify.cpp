#include "executorch_tensorrt/verify.h"

#include "program/checked_module.h"

namespace executorch_tensorrt {
namespace {

std::string text_of(const Result<std::unique_ptr<CheckedModule>>& opened) {
  return opened.ok() ? "" : opened.status().message();
}

}  // namespace

std::string verify(const std::string& path) {
  return text_of(CheckedModule::open(path, CheckedModule::LoadMode::Mmap, false));
}

std::string verify(const void* data, std::size_t size) { return text_of(CheckedModule::open(data, size, false)); }

}  // namespace executorch_tensorrt
