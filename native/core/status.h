// Status and Result: how the core reports failure. It decides and returns values; runtime/ maps them to
// executorch::runtime::Error and bindings/ to Python exceptions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/text.h"

namespace executorch_tensorrt {

enum class StatusCode {
  kOk,
  kInvalidArgument,  // the caller's input, request or option
  kInvalidProgram,   // the blob or the engine in it
  kNotSupported,     // valid, but not on this machine or not in this version
  kOutOfMemory,
  kInternal,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : code_(code),
        message_(message.empty() ? nullptr : std::make_shared<const std::string>(printable(std::move(message)))) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const {
    static const std::string none;
    return message_ ? *message_ : none;
  }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::shared_ptr<const std::string> message_;  // null without a text: success costs next to nothing
};

inline Status invalid_argument(std::string message) { return {StatusCode::kInvalidArgument, std::move(message)}; }

inline Status invalid_program(std::string message) { return {StatusCode::kInvalidProgram, std::move(message)}; }

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Status status) : state_(std::move(status)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  T& operator*() { return std::get<T>(state_); }
  const T& operator*() const { return std::get<T>(state_); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }
  const Status& status() const { return std::get<Status>(state_); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace executorch_tensorrt
