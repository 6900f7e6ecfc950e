// Version 1: one launch, in which each warp adds the terms of 1024 words and adds its sum to the
// tensor's with one integer atomic. Integers add to the same value in any order.
#include "kernels/cuda_device.h"
#include "kernels/cuda_ring.h"
#include "kernels/digest_cuda.h"
#include "kernels/digest_mix.h"

namespace trainwreck::kernels {
namespace cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarpsPerBlock = kThreads / kWarp;
constexpr std::int64_t kWordsPerPiece = 1024;
constexpr int kPairsInFlight = 8;
static_assert(kWordsPerPiece % (2 * kWarp * kPairsInFlight) == 0);

struct TableEntry {
  const char* data;
  std::int64_t bytes;
  std::int64_t first;  // piece, in the list's numbering
  DType dtype;
};

std::int64_t Pieces(std::int64_t bytes) {
  return (bytes + 8 * kWordsPerPiece - 1) / (8 * kWordsPerPiece);
}

// A whole piece at an address that suits loads of 16 bytes.
__device__ __forceinline__ std::uint64_t WholePiece(const char* data, std::uint64_t first,
                                                    unsigned lane) {
  const ulonglong2* pairs = reinterpret_cast<const ulonglong2*>(data) + lane;
  std::uint64_t terms = 0;
  for (int i = 0; i < kWordsPerPiece / 2; i += kWarp * kPairsInFlight) {
    ulonglong2 loaded[kPairsInFlight];
#pragma unroll
    for (int k = 0; k < kPairsInFlight; ++k) loaded[k] = pairs[i + k * static_cast<int>(kWarp)];
#pragma unroll
    for (int k = 0; k < kPairsInFlight; ++k) {
      const std::uint64_t position = first + 2 * (static_cast<std::uint64_t>(i) + k * kWarp + lane);
      terms += DigestTerm(loaded[k].x, position) + DigestTerm(loaded[k].y, position + 1);
    }
  }
  return terms;
}

// Any piece, byte by byte: an odd address, or the tensor's end.
__device__ std::uint64_t AnyPiece(const char* data, std::int64_t bytes, std::uint64_t first,
                                  unsigned lane) {
  std::uint64_t terms = 0;
  for (std::int64_t word = lane; word * 8 < bytes; word += kWarp) {
    std::uint64_t value = 0;
    for (std::int64_t b = 0; b < 8 && word * 8 + b < bytes; ++b) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(data[word * 8 + b]))
               << (8 * b);
    }
    terms += DigestTerm(value, first + static_cast<std::uint64_t>(word));
  }
  return terms;
}

__global__ void __launch_bounds__(kThreads)
    SumTerms(const TableEntry* table, int tensors, std::int64_t pieces, unsigned long long* sums) {
  const std::int64_t piece =
      static_cast<std::int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp;
  if (piece >= pieces) return;  // the whole warp
  const unsigned lane = threadIdx.x % kWarp;
  const TableEntry& entry = EntryOf(table, tensors, piece);
  const std::int64_t first_word = (piece - entry.first) * kWordsPerPiece;
  const char* data = entry.data + first_word * 8;
  const std::int64_t bytes = entry.bytes - first_word * 8;
  const std::uint64_t first = static_cast<std::uint64_t>(first_word);
  std::uint64_t terms;
  if (bytes >= 8 * kWordsPerPiece && reinterpret_cast<std::uintptr_t>(data) % 16 == 0) {
    terms = WholePiece(data, first, lane);
  } else {
    terms = AnyPiece(data, bytes < 8 * kWordsPerPiece ? bytes : 8 * kWordsPerPiece, first, lane);
  }
  for (unsigned mask = kWarp / 2; mask > 0; mask /= 2) {
    terms += __shfl_xor_sync(kAllLanes, terms, mask);
  }
  if (lane == 0) atomicAdd(sums + (&entry - table), static_cast<unsigned long long>(terms));
}

}  // namespace
}  // namespace cuda

CudaDigests::CudaDigests(int slots) : ring_(std::make_unique<cuda::Ring>(slots)) {}
CudaDigests::~CudaDigests() = default;
int CudaDigests::in_flight() const { return ring_->in_flight(); }

bool CudaDigests::Launch(std::span<const TensorView> tensors, std::int64_t tag, void* stream) {
  using namespace cuda;
  RingSlot* slot = ring_->Free();
  if (slot == nullptr) return false;
  const std::size_t table_bytes = tensors.size() * sizeof(TableEntry);
  const std::size_t sum_bytes = tensors.size() * sizeof(std::uint64_t);
  auto* table = static_cast<TableEntry*>(slot->host_table.Reserve(table_bytes));
  std::int64_t pieces = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& tensor = tensors[i];
    table[i] = {static_cast<const char*>(tensor.data), tensor.bytes(), pieces, tensor.dtype};
    pieces += Pieces(tensor.bytes());
  }
  slot->table.Reserve(table_bytes);
  slot->results.Reserve(sum_bytes);
  slot->host_results.Reserve(sum_bytes);
  slot->tag = tag;
  slot->items = tensors.size();
  if (!tensors.empty()) {
    CopyAsync(slot->table.as<void>(), table, table_bytes, stream);
    ClearAsync(slot->results.as<void>(), sum_bytes, stream);
    if (pieces > 0) {
      cuda::Launch(SumTerms, (pieces + kWarpsPerBlock - 1) / kWarpsPerBlock, kThreads, stream,
                   slot->table.as<const TableEntry>(), static_cast<int>(tensors.size()), pieces,
                   slot->results.as<unsigned long long>());
    }
    CopyAsync(slot->host_results.as<void>(), slot->results.as<void>(), sum_bytes, stream);
  }
  Record(slot->done, stream);
  ring_->Submit(slot);
  return true;
}

std::optional<CudaDigests::Result> CudaDigests::Take(bool wait) {
  cuda::RingSlot* slot = ring_->Oldest(wait);
  if (slot == nullptr) return std::nullopt;
  const auto* table = slot->host_table.as<const cuda::TableEntry>();
  const auto* sums = slot->host_results.as<const std::uint64_t>();
  Result result{slot->tag, {}};
  for (std::size_t i = 0; i < slot->items; ++i) {
    result.digests.push_back(DigestEnd(sums[i], table[i].bytes, table[i].dtype));
  }
  ring_->Release(slot);
  return result;
}

std::optional<CudaDigests::Result> CudaDigests::Poll() { return Take(false); }
std::optional<CudaDigests::Result> CudaDigests::Wait() { return Take(true); }

}  // namespace trainwreck::kernels
