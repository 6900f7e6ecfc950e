// Version 1: two launches, whatever the number of tensors. The first gives a chunk of 8 strips to
// each warp and a strip to each 4 threads, which keep 4 lanes each: a load of 4 elements a thread,
// whole sectors of memory, 8 loads in flight. The second gives a tensor to each block and adds its
// chunks. Sums are in double: a GPU for training has double units to spare here, since memory sets
// the pace.
#include <stdexcept>
#include <string>

#include "kernels/cuda_device.h"
#include "kernels/cuda_ring.h"
#include "kernels/float16.h"
#include "kernels/tensor_stats_cuda.h"
#include "kernels/tensor_stats_order.h"

namespace trainwreck::kernels {
namespace cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kChunksPerBlock = kThreads / kWarp;
constexpr unsigned kThreadsPerStrip = 4;
constexpr unsigned kLanesPerThread = kLanes / kThreadsPerStrip;
constexpr int kRowsInFlight = 8;

static_assert(kWarp / kThreadsPerStrip == kStripsPerChunk);
static_assert(kThreads == kSlots);
static_assert(kStrip / kLanes % kRowsInFlight == 0);

struct TableEntry {
  const char* data;
  std::int64_t count;
  std::int64_t first;  // chunk, in the list's numbering
  DType dtype;
};

struct ChunkSums {
  double sum = 0;
  double squares = 0;
  std::uint32_t max_bits = 0;
  std::int32_t zeros = 0;
  std::int32_t nonfinite = 0;
  std::int32_t nan = 0;
};

// The four lanes of one thread.
struct ThreadSums {
  double sum[kLanesPerThread] = {};
  double squares[kLanesPerThread] = {};
  ChunkSums counts;

  __device__ __forceinline__ void Add(unsigned lane, float value) {
    const std::int32_t magnitude = static_cast<std::int32_t>(FloatBits(value) & 0x7fffffffu);
    const bool finite = magnitude < kInfinityBits;
    const double x = finite ? value : 0.0f;
    sum[lane] += x;
    squares[lane] += x * x;
    const std::uint32_t finite_magnitude = finite ? magnitude : 0;
    counts.max_bits = counts.max_bits > finite_magnitude ? counts.max_bits : finite_magnitude;
    counts.zeros += magnitude == 0;
    counts.nonfinite += !finite;
    counts.nan += magnitude > kInfinityBits;
  }
};

// Each: the bits of one element, of four, and how to widen them.
struct Float32 {
  using Bits = std::uint32_t;
  using Four = uint4;
  static __device__ __forceinline__ float Widen(Bits bits) { return FloatFromBits(bits); }
  static __device__ __forceinline__ Bits Element(const Four& four, unsigned i) {
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
  }
};

struct SixteenBits {
  using Bits = std::uint16_t;
  using Four = uint2;
  static __device__ __forceinline__ Bits Element(const Four& four, unsigned i) {
    const std::uint32_t pair = i < 2 ? four.x : four.y;
    return static_cast<Bits>(i % 2 == 0 ? pair : pair >> 16);
  }
};

struct Float16 : SixteenBits {
  static __device__ __forceinline__ float Widen(Bits bits) { return WidenFloat16(bits); }
};
struct BFloat16 : SixteenBits {
  static __device__ __forceinline__ float Widen(Bits bits) { return WidenBFloat16(bits); }
};

// A whole strip whose address suits loads of four elements.
template <typename Format>
__device__ __forceinline__ void AddWholeStrip(const char* strip, unsigned quarter,
                                              ThreadSums& sums) {
  using Four = typename Format::Four;
  const Four* at = reinterpret_cast<const Four*>(strip) + quarter;
  for (int row = 0; row < kStrip / kLanes; row += kRowsInFlight) {
    Four rows[kRowsInFlight];
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) rows[r] = at[(row + r) * kThreadsPerStrip];
#pragma unroll
    for (int r = 0; r < kRowsInFlight; ++r) {
#pragma unroll
      for (unsigned i = 0; i < kLanesPerThread; ++i) {
        sums.Add(i, Format::Widen(Format::Element(rows[r], i)));
      }
    }
  }
}

template <typename Format>
__device__ void AddStrip(const char* strip, int count, unsigned quarter, ThreadSums& sums) {
  using Bits = typename Format::Bits;
  if (count == kStrip &&
      reinterpret_cast<std::uintptr_t>(strip) % sizeof(typename Format::Four) == 0) {
    AddWholeStrip<Format>(strip, quarter, sums);
    return;
  }
  const Bits* elements = reinterpret_cast<const Bits*>(strip);
  for (int row = 0; row < count; row += kLanes) {
#pragma unroll
    for (unsigned i = 0; i < kLanesPerThread; ++i) {
      const int index = row + static_cast<int>(quarter * kLanesPerThread + i);
      if (index < count) sums.Add(i, Format::Widen(elements[index]));
    }
  }
}

template <typename T>
__device__ __forceinline__ T Other(T value, unsigned mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}

// Adds over the warp: the 16 lanes of each strip by halves, then the 8 strips by halves.
__device__ double AddOverWarp(double (&lanes)[kLanesPerThread]) {
  for (double& lane : lanes) lane += Other(lane, 2);  // lane k takes k + 8
  for (double& lane : lanes) lane += Other(lane, 1);  // k + 4
  double sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  for (unsigned mask = kWarp / 2; mask >= kThreadsPerStrip; mask /= 2) sum += Other(sum, mask);
  return sum;
}

__global__ void __launch_bounds__(kThreads)
    SumChunks(const TableEntry* table, int tensors, std::int64_t chunks, ChunkSums* results) {
  const std::int64_t chunk =
      static_cast<std::int64_t>(blockIdx.x) * kChunksPerBlock + threadIdx.x / kWarp;
  if (chunk >= chunks) return;  // the whole warp
  const TableEntry& entry = EntryOf(table, tensors, chunk);
  const unsigned strip = threadIdx.x % kWarp / kThreadsPerStrip;
  const unsigned quarter = threadIdx.x % kThreadsPerStrip;
  const std::int64_t first =
      (chunk - entry.first) * kChunk + static_cast<std::int64_t>(strip) * kStrip;
  const std::int64_t left = entry.count - first;
  ThreadSums sums;
  if (left > 0) {
    const int count = left < kStrip ? static_cast<int>(left) : kStrip;
    if (entry.dtype == DType::kFloat32) {
      AddStrip<Float32>(entry.data + first * 4, count, quarter, sums);
    } else if (entry.dtype == DType::kFloat16) {
      AddStrip<Float16>(entry.data + first * 2, count, quarter, sums);
    } else {
      AddStrip<BFloat16>(entry.data + first * 2, count, quarter, sums);
    }
  }
  ChunkSums result = sums.counts;
  result.sum = AddOverWarp(sums.sum);
  result.squares = AddOverWarp(sums.squares);
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) {
    const std::uint32_t other = Other(result.max_bits, mask);
    result.max_bits = result.max_bits > other ? result.max_bits : other;
    result.zeros += Other(result.zeros, mask);
    result.nonfinite += Other(result.nonfinite, mask);
    result.nan += Other(result.nan, mask);
  }
  if (threadIdx.x % kWarp == 0) results[chunk] = result;
}

__device__ void Add(TensorStats& into, const TensorStats& other) {
  into.nonfinite += other.nonfinite;
  into.nan += other.nan;
  into.zeros += other.zeros;
  into.max_abs = into.max_abs > other.max_abs ? into.max_abs : other.max_abs;
  into.sum += other.sum;
  into.sum_squares += other.sum_squares;
}

__global__ void __launch_bounds__(kThreads)
    SumTensors(const TableEntry* table, const ChunkSums* chunk_sums, TensorStats* results) {
  // Raw storage: shared variables have no constructors.
  alignas(TensorStats) __shared__ char storage[kSlots * sizeof(TensorStats)];
  TensorStats* slots = reinterpret_cast<TensorStats*>(storage);
  const TableEntry& entry = table[blockIdx.x];
  const std::int64_t chunks = Chunks(entry.count);
  TensorStats mine;
  for (std::int64_t c = threadIdx.x; c < chunks; c += kSlots) {
    const ChunkSums& sums = chunk_sums[entry.first + c];
    TensorStats next;
    next.nonfinite = sums.nonfinite;
    next.nan = sums.nan;
    next.zeros = sums.zeros;
    next.max_abs = FloatFromBits(sums.max_bits);
    next.sum = sums.sum;
    next.sum_squares = sums.squares;
    Add(mine, next);
  }
  slots[threadIdx.x] = mine;
  for (unsigned half = kSlots / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) Add(slots[threadIdx.x], slots[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) {
    slots[0].count = entry.count;
    results[blockIdx.x] = slots[0];
  }
}

}  // namespace
}  // namespace cuda

CudaTensorStats::CudaTensorStats(int slots) : ring_(std::make_unique<cuda::Ring>(slots)) {}
CudaTensorStats::~CudaTensorStats() = default;
int CudaTensorStats::in_flight() const { return ring_->in_flight(); }

bool CudaTensorStats::Launch(std::span<const TensorView> tensors, std::int64_t tag, void* stream) {
  using namespace cuda;
  RingSlot* slot = ring_->Free();
  if (slot == nullptr) return false;
  const std::size_t table_bytes = tensors.size() * sizeof(TableEntry);
  const std::size_t result_bytes = tensors.size() * sizeof(TensorStats);
  auto* table = static_cast<TableEntry*>(slot->host_table.Reserve(table_bytes));
  std::int64_t chunks = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& tensor = tensors[i];
    if (tensor.dtype != DType::kFloat32 && tensor.dtype != DType::kFloat16 &&
        tensor.dtype != DType::kBFloat16) {
      throw std::invalid_argument(
          "tensor statistics: only float32, float16 and bfloat16, not type " +
          std::to_string(static_cast<int>(tensor.dtype)));
    }
    RequireAligned(tensor);
    table[i] = {static_cast<const char*>(tensor.data), tensor.count, chunks, tensor.dtype};
    chunks += Chunks(tensor.count);
  }
  slot->table.Reserve(table_bytes);
  slot->results.Reserve(result_bytes);
  slot->host_results.Reserve(result_bytes);
  slot->scratch.Reserve(static_cast<std::size_t>(chunks) * sizeof(ChunkSums));
  slot->tag = tag;
  slot->items = tensors.size();
  if (!tensors.empty()) {
    const auto* device_table = slot->table.as<const TableEntry>();
    auto* chunk_sums = slot->scratch.as<ChunkSums>();
    CopyAsync(slot->table.as<void>(), table, table_bytes, stream);
    if (chunks > 0) {
      cuda::Launch(SumChunks, (chunks + kChunksPerBlock - 1) / kChunksPerBlock, kThreads, stream,
                   device_table, static_cast<int>(tensors.size()), chunks, chunk_sums);
    }
    cuda::Launch(SumTensors, static_cast<std::int64_t>(tensors.size()), kThreads, stream,
                 device_table, static_cast<const ChunkSums*>(chunk_sums),
                 slot->results.as<TensorStats>());
    CopyAsync(slot->host_results.as<void>(), slot->results.as<void>(), result_bytes, stream);
  }
  Record(slot->done, stream);
  ring_->Submit(slot);
  return true;
}

std::optional<CudaTensorStats::Result> CudaTensorStats::Take(bool wait) {
  cuda::RingSlot* slot = ring_->Oldest(wait);
  if (slot == nullptr) return std::nullopt;
  const auto* stats = slot->host_results.as<const TensorStats>();
  Result result{slot->tag, std::vector<TensorStats>(stats, stats + slot->items)};
  ring_->Release(slot);
  return result;
}

std::optional<CudaTensorStats::Result> CudaTensorStats::Poll() { return Take(false); }
std::optional<CudaTensorStats::Result> CudaTensorStats::Wait() { return Take(true); }

}  // namespace trainwreck::kernels
