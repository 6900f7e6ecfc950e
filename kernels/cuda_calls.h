// The few calls of the CUDA runtime that the kernels make, each checked, and counted by whether it
// can make the host wait. Plain C++: compiles without the toolkit. All host code of the kernels
// goes through here (the style check sees to it), so a test can count what a training step costs.
//
// Three implementations are linked in turn: cuda_calls.cu (the runtime), cuda_absent.cc (built
// without nvcc: everything throws), cuda_on_cpu.cc (for tests: the kernels run on the CPU).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace trainwreck::kernels::cuda {

// The reason why this process cannot use CUDA; empty: it can. The first call initializes the
// device, so a process that will fork must not call it before the fork.
std::string WhyUnusable();

std::string DeviceName();  // of the current device

struct CallCounts {
  std::int64_t launches = 0;
  std::int64_t copies = 0;         // asynchronous ones, fills included
  std::int64_t synchronising = 0;  // those that can make the host wait for the device
};
CallCounts Counts();  // of this process so far

using Stream = void*;  // a cudaStream_t; null: the default stream
using Event = void*;   // a cudaEvent_t

// All throw std::runtime_error with the runtime's message when a call fails. The runtime keeps the
// last error for whoever asks next, which may be other code of the process. A call that throws
// takes its error out of there; only an error after which the device is lost stays.
std::string ErrorLeftBehind();  // empty: none

// Synchronising calls, for set-up and tear-down. Where the memory does not suffice, AllocateDevice
// throws OutOfDeviceMemory and AllocatePinned OutOfPinnedMemory (out_of_memory.h).
void* AllocateDevice(std::size_t bytes);
void* AllocatePinned(std::size_t bytes);
void FreeDevice(void* data) noexcept;
void FreePinned(void* data) noexcept;
Event MakeEvent();  // without timing
void FreeEvent(Event event) noexcept;
void WaitFor(Event event);
void WaitForStream(Stream stream);

// Asynchronous calls. Host memory must be pinned.
void CopyAsync(void* to, const void* from, std::size_t bytes, Stream stream);
void ClearAsync(void* data, std::size_t bytes, Stream stream);
void Record(Event event, Stream stream);
bool IsDone(Event event);
void LaunchKernel(const void* kernel, unsigned blocks, unsigned threads, void** arguments,
                  Stream stream);

}  // namespace trainwreck::kernels::cuda
