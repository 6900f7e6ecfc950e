// Takes the place of the .cu files where there is no nvcc.
#include <stdexcept>

#include "kernels/corrupt_cuda.h"
#include "kernels/cuda_calls.h"
#include "kernels/cuda_ring.h"
#include "kernels/digest_cuda.h"
#include "kernels/tensor_stats_cuda.h"

namespace trainwreck::kernels {
namespace cuda {
namespace {

[[noreturn]] void Refuse() { throw std::runtime_error(WhyUnusable()); }

}  // namespace

std::string WhyUnusable() { return "built without a CUDA toolkit (CUDA_HOME)"; }
std::string DeviceName() { return "none"; }
std::string ErrorLeftBehind() { return ""; }
CallCounts Counts() { return {}; }
void* AllocateDevice(std::size_t) { Refuse(); }
void* AllocatePinned(std::size_t) { Refuse(); }
void FreeDevice(void*) noexcept {}
void FreePinned(void*) noexcept {}
Event MakeEvent() { Refuse(); }
void FreeEvent(Event) noexcept {}
void WaitFor(Event) { Refuse(); }
void WaitForStream(Stream) { Refuse(); }
void CopyAsync(void*, const void*, std::size_t, Stream) { Refuse(); }
void ClearAsync(void*, std::size_t, Stream) { Refuse(); }
void Record(Event, Stream) { Refuse(); }
bool IsDone(Event) { Refuse(); }
void LaunchKernel(const void*, unsigned, unsigned, void**, Stream) { Refuse(); }

}  // namespace cuda

CudaTensorStats::CudaTensorStats(int) { cuda::Refuse(); }
CudaTensorStats::~CudaTensorStats() = default;
bool CudaTensorStats::Launch(std::span<const TensorView>, std::int64_t, void*) { cuda::Refuse(); }
std::optional<CudaTensorStats::Result> CudaTensorStats::Poll() { cuda::Refuse(); }
std::optional<CudaTensorStats::Result> CudaTensorStats::Wait() { cuda::Refuse(); }
int CudaTensorStats::in_flight() const { return 0; }

CudaDigests::CudaDigests(int) { cuda::Refuse(); }
CudaDigests::~CudaDigests() = default;
bool CudaDigests::Launch(std::span<const TensorView>, std::int64_t, void*) { cuda::Refuse(); }
std::optional<CudaDigests::Result> CudaDigests::Poll() { cuda::Refuse(); }
std::optional<CudaDigests::Result> CudaDigests::Wait() { cuda::Refuse(); }
int CudaDigests::in_flight() const { return 0; }

struct CudaCorruptor::Memory {};
CudaCorruptor::CudaCorruptor() { cuda::Refuse(); }
CudaCorruptor::~CudaCorruptor() = default;
CorruptionReport CudaCorruptor::Corrupt(const MutableTensorView&, const Corruption&, void*) {
  cuda::Refuse();
}

}  // namespace trainwreck::kernels
