#include "aoti/torch_api.h"

#include <dlfcn.h>

#include <mutex>
#include <stdexcept>

namespace executorch_tensorrt::torch_api {
namespace {

Functions table;
std::once_flag filled;
Status fill_status;

using CurrentStream = int (*)(std::int32_t device_index, void** stream);
CurrentStream current_stream = nullptr;

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

Status fill() {
  void* const library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);  // stays: its operators are ours
  if (library == nullptr) {
    return {StatusCode::kNotSupported, "this process has no PyTorch; import torch first"};
  }
  std::string missing;
  // clang-format off
#define ETRT_FIND(name) if (!find(library, #name, table.name)) missing = #name
  // clang-format on
  ETRT_FIND(aoti_torch_library_init_fragment);
  ETRT_FIND(aoti_torch_library_def);
  ETRT_FIND(aoti_torch_library_init_impl);
  ETRT_FIND(torch_library_impl);
  ETRT_FIND(torch_list_size);
  ETRT_FIND(torch_list_get_item);
  ETRT_FIND(torch_list_push_back);
  ETRT_FIND(torch_new_list_reserve_size);
  ETRT_FIND(torch_delete_list);
  ETRT_FIND(torch_new_string_handle);
  ETRT_FIND(torch_string_length);
  ETRT_FIND(torch_string_c_str);
  ETRT_FIND(torch_delete_string);
  ETRT_FIND(aoti_torch_get_data_ptr);
  ETRT_FIND(aoti_torch_get_dim);
  ETRT_FIND(aoti_torch_get_numel);
  ETRT_FIND(aoti_torch_get_sizes);
  ETRT_FIND(aoti_torch_get_dtype);
  ETRT_FIND(aoti_torch_get_device_type);
  ETRT_FIND(aoti_torch_get_device_index);
  ETRT_FIND(aoti_torch_get_layout);
  ETRT_FIND(aoti_torch_is_contiguous);
  ETRT_FIND(aoti_torch_empty_strided);
  ETRT_FIND(aoti_torch_delete_tensor_object);
  ETRT_FIND(aoti_record_function_start);
  ETRT_FIND(aoti_record_function_end);
#undef ETRT_FIND
  if (!missing.empty()) {
    return {StatusCode::kNotSupported, "this process has a PyTorch that is too old for packages: it has no " + missing +
                                           ", allowed 2.10 or later"};
  }
  if (void* const cuda = dlopen("libtorch_cuda.so", RTLD_LAZY | RTLD_NOLOAD)) {
    (void)find(cuda, "aoti_torch_get_current_cuda_stream", current_stream);
  }
  return {};
}

}  // namespace

Status load() {
  std::call_once(filled, [] { fill_status = fill(); });
  return fill_status;
}

const Functions& functions() { return table; }

void* current_cuda_stream(std::int32_t device_index) {
  void* stream = nullptr;
  if (current_stream != nullptr) {
    check(current_stream(device_index, &stream), "aoti_torch_get_current_cuda_stream");
  }
  return stream;
}

void check(int error, const char* function) {
  if (error != 0) {
    throw std::runtime_error(std::string("PyTorch's ") + function + "() failed; its log says why");
  }
}

}  // namespace executorch_tensorrt::torch_api
