#include "trainer/optimizers/division.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

namespace trainwreck {
namespace {

std::vector<OwnedPart> Divide(const NamedTensors& parameters, int ranks) {
  std::int64_t all = 0;
  for (const auto& [name, parameter] : parameters) all += parameter.numel();
  std::vector<OwnedPart> parts;
  std::int64_t first = 0;  // the place of the parameter in the row of all elements
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t last = first + parameters[i].second.numel();
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t begin = std::max(first, all * rank / ranks);
      const std::int64_t end = std::min(last, all * (rank + 1) / ranks);
      if (begin < end) parts.push_back({i, begin - first, end - begin, rank});
    }
    first = last;
  }
  return parts;
}

constexpr std::int64_t kFields = 7;  // of TensorStats

void Write(const kernels::TensorStats& stats, double* into) {
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  for (const double value : {number(stats.count), number(stats.nonfinite), number(stats.nan),
                             number(stats.zeros), stats.max_abs, stats.sum, stats.sum_squares}) {
    *into++ = value;
  }
}

void Add(const double* from, kernels::TensorStats& stats) {
  const auto count = [&](int field) { return static_cast<std::int64_t>(from[field]); };
  stats.count += count(0);
  stats.nonfinite += count(1);
  stats.nan += count(2);
  stats.zeros += count(3);
  stats.max_abs = std::max(stats.max_abs, from[4]);
  stats.sum += from[5];
  stats.sum_squares += from[6];
}

}  // namespace

Division::Division(NamedTensors parameters, int rank, int world_size)
    : rank_(rank), parameters_(std::move(parameters)), parts_(Divide(parameters_, world_size)) {
  for (const OwnedPart& part : parts_) {
    own_of_.push_back(own_.size());
    if (!Owns(part)) continue;
    const auto& [name, parameter] = parameters_[part.parameter];
    own_.emplace_back(name, part.Of(parameter.detach()));
  }
}

void Division::Separate() {
  for (auto& [name, part] : own_) part = part.clone();
}

std::vector<OwnedPiece> Division::PiecesOf(const std::vector<std::size_t>& parameters) const {
  std::vector<OwnedPiece> pieces;
  auto wanted = parameters.begin();
  std::int64_t end = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    while (wanted != parameters.end() && *wanted < parts_[i].parameter) ++wanted;
    if (wanted == parameters.end()) break;
    if (*wanted != parts_[i].parameter) continue;
    if (pieces.empty() || pieces.back().owner != parts_[i].owner) {
      pieces.push_back({parts_[i].owner, end, 0, {}});
    }
    pieces.back().size += parts_[i].size;
    pieces.back().parts.push_back(i);
    end += parts_[i].size;
  }
  return pieces;
}

std::vector<kernels::TensorStats> StatsOverRanks(Communicator& communicator,
                                                 const Division& division,
                                                 const std::vector<kernels::TensorStats>& own) {
  // Each rank fills in its own table, so that the sum has those of all.
  const auto ranks = static_cast<std::int64_t>(communicator.world_size());
  const auto parameters = static_cast<std::int64_t>(division.parameters().size());
  at::Tensor all = at::zeros({ranks, parameters, kFields}, at::kDouble);
  const auto row = [&](int rank, std::size_t parameter) {
    return all.mutable_data_ptr<double>() +
           (rank * parameters + static_cast<std::int64_t>(parameter)) * kFields;
  };
  for (std::size_t i = 0; i < division.parts().size(); ++i) {
    const OwnedPart& part = division.parts()[i];
    if (division.Owns(part)) Write(own[division.own_of(i)], row(part.owner, part.parameter));
  }
  communicator.AllReduce(all, Reduction::kSum);
  std::vector<kernels::TensorStats> stats(division.parameters().size());
  for (const OwnedPart& part : division.parts()) {
    Add(row(part.owner, part.parameter), stats[part.parameter]);
  }
  return stats;
}

}  // namespace trainwreck
