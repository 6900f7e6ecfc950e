#include "harness/trainer/tensor_views.h"

#include <stdexcept>
#include <string>

#include "kernels/digest.h"

namespace trainwreck {
namespace {

kernels::DType DTypeOf(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return kernels::DType::kFloat32;
    case at::kHalf:
      return kernels::DType::kFloat16;
    case at::kBFloat16:
      return kernels::DType::kBFloat16;
    case at::kDouble:
      return kernels::DType::kFloat64;
    case at::kLong:
      return kernels::DType::kInt64;
    case at::kInt:
      return kernels::DType::kInt32;
    case at::kByte:
      return kernels::DType::kUint8;
    default:
      throw std::invalid_argument(std::string("no kernel for tensors of ") + c10::toString(type));
  }
}

// The usual case goes without a call into LibTorch's dispatcher: it would cost as much as a small
// tensor's statistics.
at::Tensor OnHost(const at::Tensor& tensor) {
  if (tensor.is_cpu() && tensor.is_contiguous()) return tensor;
  return tensor.detach().cpu().contiguous();
}

at::Tensor NoDoubles(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kDouble ? tensor.detach().to(at::kFloat) : tensor;
}

}  // namespace

HostView::HostView(const at::Tensor& tensor)
    : owner(OnHost(tensor)),
      view{owner.const_data_ptr(), owner.numel(), DTypeOf(owner.scalar_type())} {}

std::uint64_t DigestOf(const at::Tensor& tensor) {
  return kernels::TensorDigest(HostView(tensor).view);
}

kernels::TensorStats StatsOf(const at::Tensor& tensor) {
  return kernels::ComputeTensorStats(HostView(NoDoubles(tensor)).view);
}

std::vector<kernels::TensorStats> StatsOf(const std::vector<at::Tensor>& tensors) {
  std::vector<HostView> hosts;
  std::vector<kernels::TensorView> views;
  hosts.reserve(tensors.size());
  views.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined()) {
      views.push_back(hosts.emplace_back(NoDoubles(tensor)).view);
    } else {
      views.emplace_back();
    }
  }
  std::vector<kernels::TensorStats> stats(tensors.size());
  kernels::ComputeTensorStats(views, stats);
  return stats;
}

}  // namespace trainwreck
