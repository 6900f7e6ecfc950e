#include "trainer/tensor_views.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_sub.h>

#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

#include "kernels/digest.h"

namespace trainwreck {
namespace {

using kernels::TensorView;

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

std::map<at::DeviceType, DeviceKernels>& Registry() {
  static std::map<at::DeviceType, DeviceKernels> kernels;
  return kernels;
}

// Null: the CPU's, for this tensor or a copy of it.
const DeviceKernels* KernelsOf(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return nullptr;
  const auto found = Registry().find(tensor.device().type());
  return found == Registry().end() ? nullptr : &found->second;
}

// Views of tensors, all in one place, and who owns what they show: the tensors themselves where
// they lie right, else copies.
class Views {
 public:
  Views(const std::vector<at::Tensor>& tensors, bool no_doubles) {
    for (const at::Tensor& tensor : tensors) {
      if (const DeviceKernels* found = KernelsOf(tensor)) kernels_ = found;
    }
    owners_.reserve(tensors.size());
    views_.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.defined()) {
        views_.emplace_back();
        continue;
      }
      const at::Tensor& owner = owners_.emplace_back(InPlace(tensor, no_doubles));
      views_.push_back({owner.const_data_ptr(), owner.numel(), DTypeOf(owner.scalar_type())});
    }
  }

  const DeviceKernels* device_kernels() const { return kernels_; }  // null: the CPU's
  const std::vector<TensorView>& views() const { return views_; }

 private:
  // The usual case goes without a call into LibTorch's dispatcher: it would cost as much as a small
  // tensor's statistics.
  at::Tensor InPlace(const at::Tensor& tensor, bool no_doubles) const {
    const bool here = kernels_ == nullptr ? tensor.is_cpu() : KernelsOf(tensor) == kernels_;
    const bool rounds = no_doubles && tensor.scalar_type() == at::kDouble;
    if (here && !rounds && tensor.is_contiguous()) return tensor;
    at::Tensor plain = tensor.detach();
    if (rounds) plain = plain.to(at::kFloat);
    if (!here && kernels_ == nullptr) plain = plain.cpu();
    if (!here && kernels_ != nullptr) throw std::invalid_argument("tensors of several devices");
    return plain.contiguous();
  }

  const DeviceKernels* kernels_ = nullptr;
  std::vector<at::Tensor> owners_;
  std::vector<TensorView> views_;
};

}  // namespace

RegisterDeviceKernels::RegisterDeviceKernels(at::DeviceType type, DeviceKernels kernels) {
  Registry()[type] = std::move(kernels);
}

std::vector<kernels::TensorStats> StatsOf(const std::vector<at::Tensor>& tensors) {
  const Views views(tensors, /*no_doubles=*/true);
  if (views.device_kernels() != nullptr) return views.device_kernels()->stats(views.views());
  std::vector<kernels::TensorStats> stats(tensors.size());
  kernels::ComputeTensorStats(views.views(), stats);
  return stats;
}

kernels::TensorStats StatsOf(const at::Tensor& tensor) {
  return StatsOf(std::vector<at::Tensor>{tensor})[0];
}

std::vector<std::uint64_t> DigestsOf(const std::vector<at::Tensor>& tensors) {
  const Views views(tensors, /*no_doubles=*/false);
  if (views.device_kernels() != nullptr) return views.device_kernels()->digests(views.views());
  std::vector<std::uint64_t> digests;
  digests.reserve(tensors.size());
  for (const TensorView& view : views.views()) digests.push_back(kernels::TensorDigest(view));
  return digests;
}

kernels::CorruptionReport Corrupt(at::Tensor& tensor, const kernels::Corruption& corruption) {
  const DeviceKernels* kernels = KernelsOf(tensor);
  at::NoGradGuard no_grad;
  at::Tensor plain = tensor.detach().contiguous();
  if (kernels == nullptr) plain = plain.cpu();
  const kernels::MutableTensorView view{plain.mutable_data_ptr(), plain.numel(),
                                        DTypeOf(plain.scalar_type())};
  kernels::CorruptionReport report =
      kernels == nullptr ? kernels::Corrupt(view, corruption) : kernels->corrupt(view, corruption);
  if (!plain.is_alias_of(tensor)) tensor.detach().copy_(plain);
  return report;
}

std::vector<kernels::ChangeStats> ChangesOf(const std::vector<at::Tensor>& now,
                                            const std::vector<at::Tensor>& before) {
  if (!now.empty() && !now[0].is_cpu()) return ChangesByDifference(now, before);
  std::vector<kernels::ChangeStats> changes;
  changes.reserve(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    const at::Tensor a = now[i].to(at::kFloat), b = before[i].to(at::kFloat);  // exact
    changes.push_back(
        kernels::CompareTensors(a.const_data_ptr<float>(), b.const_data_ptr<float>(), a.numel()));
  }
  return changes;
}

std::vector<kernels::ChangeStats> ChangesByDifference(const std::vector<at::Tensor>& now,
                                                      const std::vector<at::Tensor>& before) {
  if (now.empty()) return {};
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors = at::_foreach_sub(now, before);
  tensors.insert(tensors.end(), now.begin(), now.end());
  const std::vector<kernels::TensorStats> stats = StatsOf(tensors);
  const auto squares = [](const kernels::TensorStats& of) {
    return of.nonfinite > 0 ? of.ieee_norm() : of.sum_squares;
  };
  std::vector<kernels::ChangeStats> changes;
  changes.reserve(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    changes.push_back({.now_squares = squares(stats[now.size() + i]),
                       .change_squares = squares(stats[i]),
                       .changed = stats[i].count - stats[i].zeros});
  }
  return changes;
}

void CopyTensors(const std::vector<at::Tensor>& from, std::vector<at::Tensor>& into) {
  if (!from.empty() && !from[0].is_cpu()) {
    at::NoGradGuard no_grad;
    at::_foreach_copy_(into, from);
    return;
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::memcpy(into[i].mutable_data_ptr(), from[i].const_data_ptr(), from[i].nbytes());
  }
}

}  // namespace trainwreck
