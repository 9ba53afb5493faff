// The functions of PyTorch's stable C interface that operators need, found in the PyTorch that the process has loaded:
// this library links none. Types and ownership are those of torch/csrc/stable/c/shim.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "core/status.h"

namespace executorch_tensorrt::torch_api {

using Value = std::uint64_t;  // StableIValue: a number, or a handle that its receiver owns
using Kernel = void (*)(Value* stack, std::uint64_t num_arguments, std::uint64_t num_outputs);
struct Tensor;
struct List;
struct String;
struct Library;
struct RecordFunction;

// clang-format off
struct Functions {
  int (*aoti_torch_library_init_fragment)(const char* name, const char* file, std::uint32_t line, Library** library);
  int (*aoti_torch_library_def)(Library* library, const char* schema);
  int (*aoti_torch_library_init_impl)(const char* name, const char* key, const char* file, std::uint32_t line,
                                      Library** library);
  int (*torch_library_impl)(Library* library, const char* name, Kernel kernel, std::uint64_t version);
  int (*torch_list_size)(List* list, std::size_t* size);
  int (*torch_list_get_item)(List* list, std::size_t index, Value* item);
  int (*torch_list_push_back)(List* list, Value item);
  int (*torch_new_list_reserve_size)(std::size_t size, List** list);
  int (*torch_delete_list)(List* list);
  int (*torch_new_string_handle)(const char* data, std::size_t size, String** string);
  int (*torch_string_length)(String* string, std::size_t* size);
  int (*torch_string_c_str)(String* string, const char** data);
  int (*torch_delete_string)(String* string);
  int (*aoti_torch_get_data_ptr)(Tensor* tensor, void** data);
  int (*aoti_torch_get_dim)(Tensor* tensor, std::int64_t* rank);
  int (*aoti_torch_get_numel)(Tensor* tensor, std::int64_t* count);
  int (*aoti_torch_get_sizes)(Tensor* tensor, std::int64_t** sizes);
  int (*aoti_torch_get_dtype)(Tensor* tensor, std::int32_t* dtype);
  int (*aoti_torch_get_device_type)(Tensor* tensor, std::int32_t* type);
  int (*aoti_torch_get_device_index)(Tensor* tensor, std::int32_t* index);
  int (*aoti_torch_get_layout)(Tensor* tensor, std::int32_t* layout);
  int (*aoti_torch_is_contiguous)(Tensor* tensor, bool* contiguous);
  int (*aoti_torch_empty_strided)(std::int64_t rank, const std::int64_t* sizes, const std::int64_t* strides,
                                  std::int32_t dtype, std::int32_t device_type, std::int32_t device_index,
                                  Tensor** tensor);
  int (*aoti_torch_delete_tensor_object)(Tensor* tensor);
  int (*aoti_record_function_start)(const char* name, void* kwargs, void* const* inputs, std::uint64_t num_inputs,
                                    RecordFunction** record);
  int (*aoti_record_function_end)(RecordFunction* record);
};
// clang-format on

// kNotSupported when the process has no PyTorch, or one that lacks one of them (before 2.10).
Status load();

// After load() has succeeded once.
const Functions& functions();

// The current stream of a CUDA device, as PyTorch has it; null where that knows no CUDA.
void* current_cuda_stream(std::int32_t device_index);

// Throws std::runtime_error when a function of PyTorch's failed.
void check(int error, const char* function);

template <typename T, int (*Functions::*free)(T*)>
struct Free {
  void operator()(T* object) const { (void)(functions().*free)(object); }
};
using TensorPtr = std::unique_ptr<Tensor, Free<Tensor, &Functions::aoti_torch_delete_tensor_object>>;
using ListPtr = std::unique_ptr<List, Free<List, &Functions::torch_delete_list>>;  // not what is in it
using StringPtr = std::unique_ptr<String, Free<String, &Functions::torch_delete_string>>;

template <typename T>
T* handle(Value value) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(value));
}

template <typename T>
Value value_of(T* object) {
  return static_cast<Value>(reinterpret_cast<std::uintptr_t>(object));
}

}  // namespace executorch_tensorrt::torch_api
