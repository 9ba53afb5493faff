#include "runtime/selection_collector.h"

namespace executorch_tensorrt {

thread_local SelectionCollector* SelectionCollector::active_ = nullptr;

}  // namespace executorch_tensorrt
