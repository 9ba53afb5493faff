// Symbols of libexecutorch_tensorrt.so that C++ programs use.
#pragma once

// On functions, not on their classes: those hold types that stay in the library.
#define ETRT_API [[gnu::visibility("default")]]
