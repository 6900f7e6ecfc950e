#include "trainer/ranks/replicas.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/digest.h"
#include "trainer/tensor_views.h"

namespace trainwreck {
namespace {

// The digest of one tensor that more than half of the ranks have.
std::optional<std::int64_t> MajorityOf(const std::vector<std::vector<std::int64_t>>& digests,
                                       std::size_t tensor) {
  std::map<std::int64_t, std::size_t> votes;
  for (const auto& of_rank : digests) {
    if (2 * ++votes[of_rank[tensor]] > digests.size()) return of_rank[tensor];
  }
  return std::nullopt;
}

std::vector<std::int64_t> OwnDigests(const NamedTensors& tensors) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> plain;
  for (const auto& [name, tensor] : tensors) plain.push_back(tensor);
  std::vector<std::int64_t> digests;
  for (const std::uint64_t digest : DigestsOf(plain)) {
    digests.push_back(static_cast<std::int64_t>(digest));
  }
  return digests;
}

std::int64_t Combined(const std::vector<std::int64_t>& digests) {
  const std::vector<std::uint64_t> parts(digests.begin(), digests.end());
  return static_cast<std::int64_t>(kernels::CombineDigests(parts));
}

// The numbers of all ranks, [rank][number]. `tensors` say on which device the ranks talk.
std::vector<std::vector<std::int64_t>> TableOf(Communicator& communicator,
                                               const std::vector<std::int64_t>& own,
                                               const NamedTensors& tensors) {
  const auto world_size = static_cast<std::int64_t>(communicator.world_size());
  const auto count = static_cast<std::int64_t>(own.size());
  // Each rank fills in its own row, so that the sum is the table of all.
  at::Tensor table = at::zeros({world_size, count}, at::kLong);
  std::copy(own.begin(), own.end(),
            table.mutable_data_ptr<std::int64_t>() + communicator.rank() * count);
  table = table.to(tensors[0].second.device());
  communicator.AllReduce(table, Reduction::kSum);
  table = table.cpu();
  std::vector<std::vector<std::int64_t>> rows;
  for (std::int64_t rank = 0; rank < world_size; ++rank) {
    const auto* row = table.const_data_ptr<std::int64_t>() + rank * count;
    rows.emplace_back(row, row + count);
  }
  return rows;
}

}  // namespace

std::optional<Desync> FindDesync(const std::vector<std::vector<std::int64_t>>& digests,
                                 const NamedTensors& tensors) {
  Desync found{.reference = "majority"};
  std::vector<std::int64_t> reference;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const auto majority = MajorityOf(digests, tensor);
    if (!majority) {
      found.reference = "rank 0";
      break;
    }
    reference.push_back(*majority);
  }
  if (found.reference == "rank 0") reference = digests[0];
  std::set<int> ranks;
  for (std::size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    bool differs = false;
    for (std::size_t rank = 0; rank < digests.size(); ++rank) {
      if (digests[rank][tensor] == reference[tensor]) continue;
      ranks.insert(static_cast<int>(rank));
      differs = true;
    }
    if (differs) found.tensors.push_back(tensors[tensor].first);
  }
  if (ranks.empty()) return std::nullopt;
  found.ranks.assign(ranks.begin(), ranks.end());
  return found;
}

std::optional<Desync> CompareReplicas(Communicator& communicator, const NamedTensors& tensors) {
  if (communicator.world_size() == 1 || tensors.empty()) return std::nullopt;
  return FindDesync(TableOf(communicator, OwnDigests(tensors), tensors), tensors);
}

void KeptDigests::Keep(int step, const NamedTensors& tensors) {
  kept_.push_back({step, OwnDigests(tensors)});
}

std::optional<KeptDigests::Apart> KeptDigests::FirstApart(Communicator& communicator,
                                                          const NamedTensors& tensors) const {
  if (communicator.world_size() == 1 || kept_.empty() || tensors.empty()) return std::nullopt;
  std::vector<std::int64_t> of_steps;
  for (const Step& one : kept_) of_steps.push_back(Combined(one.digests));
  const auto table = TableOf(communicator, of_steps, tensors);
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const bool is_apart = std::any_of(table.begin(), table.end(),
                                      [&](const auto& row) { return row[i] != table[0][i]; });
    if (!is_apart) continue;
    auto desync = FindDesync(TableOf(communicator, kept_[i].digests, tensors), tensors);
    if (desync) return Apart{kept_[i].step, *std::move(desync)};
  }
  return std::nullopt;
}

void BroadcastState(Communicator& communicator, const StateDict& state, int root) {
  at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : state) {
    at::Tensor copy = tensor.clone();  // a peer may read the buffer while this rank goes on
    communicator.Broadcast(copy, root);
    at::Tensor into = tensor;
    into.copy_(copy);
  }
}

}  // namespace trainwreck
