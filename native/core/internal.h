// Functions that libexecutorch_tensorrt.so exports for this project's own binaries, the extension module and the
// runner.
#pragma once

#define ETRT_INTERNAL [[gnu::visibility("default")]]
