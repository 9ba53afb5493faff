// What tests ask of the fake CUDA runtime in cudart.cpp, which exports CUDA's own names.
//
// Its device is memory that the host cannot touch: addresses of it fault on the host, and only copies and work on a
// stream reach what is behind them. No address is used twice, so that work with memory that was freed before it ran is
// noticed when it runs; that with memory of malloc(), pinned or managed is not, but by AddressSanitizer. Streams are as
// late as a device may be: nothing that is queued happens before somebody waits for it, or until fake_cuda_run(). What
// no program may do ends the process with a line on stderr: copies out of bounds, of freed memory, in a direction that
// is not that of the memory; a free in the middle of a block; work in a thread whose calls so far needed no device,
// which fails on a GPU where TensorRT launches by the driver.
//
// Limits. Copies from and to memory of malloc() are as late as all others, where CUDA stages some of them at once. The
// default stream orders nothing but itself. A synchronise that fails has waited, since what CUDA reports there are
// faults of the work. Freeing memory does not wait for work that uses it:
// cudaFree() may. Every copy and every work takes 1 ms of a
// clock of its own, one after the other over all streams. One driver and one runtime per process; no peer access,
// no memory pools, no IPC, no callbacks. Graphs are of copies and work alone: an event on a captured stream ends the
// process. A capture is disturbed by its own thread alone, not by others.
#pragma once

#include <cstddef>

extern "C" {

// As a new process has it, with so many devices. Nothing may be under way. What is allocated stays so; addresses of
// device memory begin again where there is none.
void fake_cuda_reset(int devices);
void fake_cuda_set_devices(int devices);
// Of this thread.
int fake_cuda_current_device(void);
void fake_cuda_make_current(int device);
// As CUDA counts: 12040 is 12.4. A driver of 0 is none.
void fake_cuda_set_versions(int runtime, int driver);
// Of all devices together, from now on.
void fake_cuda_set_free_memory(std::size_t bytes);

// `kind` as cudaMemoryType: 1 pinned host memory, 2 device memory, 3 managed memory. Filled with 0xCD.
void* fake_cuda_allocate(std::size_t nbytes, int kind, int device);
void fake_cuda_free(void* data);
// Where the host may read and write what is at a device address, as the work on a stream does.
void* fake_cuda_at(const void* data, std::size_t nbytes);

// The log calls them s1, s2, and so on.
void* fake_cuda_stream_create(int device);
// Another stream with the handle of one that was destroyed, which may still be at work.
void* fake_cuda_stream_create_again(void* destroyed);
void fake_cuda_stream_destroy(void* stream);
// 0 not capturing, 1 capturing, 2 a capture that has failed.
void fake_cuda_set_capturing(void* stream, int status);
int fake_cuda_capturing(void* stream);
// On a captured stream, the work happens whenever the graph runs. `release` comes when it can happen no more.
void fake_cuda_enqueue(void* stream, void (*work)(void*), void* argument, void (*release)(void*));
// How many copies and works are queued.
int fake_cuda_pending(void* stream);
void fake_cuda_run(void* stream);
// The queue of a stream, which stays when the stream is destroyed and another one gets its handle.
void* fake_cuda_queue_of(void* stream);
// Lets a queue come to the next `count` things in it: copies, works, records of events, and waits, each with all that
// is waited for. How many there were.
int fake_cuda_run_some(void* queue, int count);

// Of the calls of `function` ("cudaMalloc") from now on, number `position`, from 0, fails with `error`. With `late`, it
// has done its work then.
void fake_cuda_fail(const char* function, int position, int error, int late);
// Whether it has.
int fake_cuda_failed(void);

// The calls since the last take, a line each: "MemcpyAsync H2D 24 s1". Without cudaGetLastError and the functions that
// give texts. Valid on this thread until it asks again.
const char* fake_cuda_take_log(void);

// What is alive: memory; and events, graphs, and streams that programs made.
int fake_cuda_allocations(void);
int fake_cuda_objects(void);
// The error that CUDA keeps for this thread, which stays.
int fake_cuda_last_error(void);
}
