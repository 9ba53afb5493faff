// The names of a delegate's events. They are the same on every call: what varies goes into metadata.
#pragma once

namespace executorch_tensorrt {

inline constexpr char kDelegateEvent[] = "torchtrt.delegate";  // around all others
inline constexpr char kInputBindingEvent[] = "torchtrt.input_binding";
inline constexpr char kShapeInferenceEvent[] = "torchtrt.shape_inference";
inline constexpr char kOutputBindingEvent[] = "torchtrt.output_binding";
inline constexpr char kEnqueueEvent[] = "torchtrt.enqueue_host";
inline constexpr char kOutputStagingEvent[] = "torchtrt.output_staging";
inline constexpr char kSynchronizeEvent[] = "torchtrt.synchronize";

// The call, then its phases in the order in which they run.
inline constexpr const char* kEventNames[] = {kDelegateEvent,      kInputBindingEvent, kShapeInferenceEvent,
                                              kOutputBindingEvent, kEnqueueEvent,      kOutputStagingEvent,
                                              kSynchronizeEvent};

}  // namespace executorch_tensorrt
