// cuda_calls.h by the CUDA runtime. Run on an H200: docs/measured/gpu.md.
#include <cuda_runtime.h>

#include <atomic>
#include <stdexcept>

#include "kernels/cuda_calls.h"
#include "kernels/out_of_memory.h"

namespace trainwreck::kernels::cuda {
namespace {

std::atomic<std::int64_t> launches, copies, synchronising;

// Takes an error that somebody is told of, or that is none, out of what the runtime keeps.
void Forget() { static_cast<void>(cudaGetLastError()); }

void Check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  Forget();
  throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

cudaStream_t Native(Stream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t NativeEvent(Event event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

std::string WhyUnusable() {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
    Forget();
    return std::string("no CUDA device: ") + cudaGetErrorString(error);
  }
  int device = 0, major = 0;
  Check(cudaGetDevice(&device), "cudaGetDevice");
  Check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "cudaDeviceGetAttribute");
  return major >= 8 ? "" : "the CUDA device is older than Ampere (compute capability 8.0)";
}

std::string DeviceName() {
  int device = 0;
  cudaDeviceProp properties;
  Check(cudaGetDevice(&device), "cudaGetDevice");
  Check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

std::string ErrorLeftBehind() {
  const cudaError_t error = cudaPeekAtLastError();
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

CallCounts Counts() { return {launches, copies, synchronising}; }

void* AllocateDevice(std::size_t bytes) {
  ++synchronising;
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    Forget();
    throw OutOfDeviceMemory(bytes);
  }
  Check(status, "cudaMalloc");
  return data;
}

void* AllocatePinned(std::size_t bytes) {
  ++synchronising;
  void* data = nullptr;
  const cudaError_t status = cudaMallocHost(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    Forget();
    throw OutOfPinnedMemory();
  }
  Check(status, "cudaMallocHost");
  return data;
}

void FreeDevice(void* data) noexcept {
  ++synchronising;
  cudaFree(data);
}

void FreePinned(void* data) noexcept {
  ++synchronising;
  cudaFreeHost(data);
}

Event MakeEvent() {
  cudaEvent_t event = nullptr;
  Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  return event;
}

void FreeEvent(Event event) noexcept { cudaEventDestroy(NativeEvent(event)); }

void WaitFor(Event event) {
  ++synchronising;
  Check(cudaEventSynchronize(NativeEvent(event)), "cudaEventSynchronize");
}

void WaitForStream(Stream stream) {
  ++synchronising;
  Check(cudaStreamSynchronize(Native(stream)), "cudaStreamSynchronize");
}

void CopyAsync(void* to, const void* from, std::size_t bytes, Stream stream) {
  ++copies;
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, Native(stream)), "cudaMemcpyAsync");
}

void ClearAsync(void* data, std::size_t bytes, Stream stream) {
  ++copies;
  Check(cudaMemsetAsync(data, 0, bytes, Native(stream)), "cudaMemsetAsync");
}

void Record(Event event, Stream stream) {
  Check(cudaEventRecord(NativeEvent(event), Native(stream)), "cudaEventRecord");
}

bool IsDone(Event event) {
  const cudaError_t error = cudaEventQuery(NativeEvent(event));
  if (error == cudaErrorNotReady) {
    Forget();
    return false;
  }
  Check(error, "cudaEventQuery");
  return true;
}

void LaunchKernel(const void* kernel, unsigned blocks, unsigned threads, void** arguments,
                  Stream stream) {
  ++launches;
  Check(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), arguments, 0, Native(stream)),
        "cudaLaunchKernel");
}

}  // namespace trainwreck::kernels::cuda
