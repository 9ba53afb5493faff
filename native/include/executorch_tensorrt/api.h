// Symbols of libexecutorch_tensorrt.so that C++ programs use.
#pragma once

#define ETRT_API [[gnu::visibility("default")]]
