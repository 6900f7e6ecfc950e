// Who owns which elements of a model, in ZeRO (Rajbhandari et al. 2020). All elements of all
// parameters stand in one row, in the order of the parameters, and rank r of n owns the r-th n-th
// of it. So ranks differ by one element at most, and a large parameter can lie on several ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/tensor_stats.h"
#include "trainer/parts.h"

namespace trainwreck {

// Elements [begin, begin + size) of the flat parameter, and the rank that owns them.
struct OwnedPart {
  std::size_t parameter = 0;
  std::int64_t begin = 0, size = 0;
  int owner = 0;
  at::Tensor Of(const at::Tensor& tensor) const {
    return tensor.reshape({-1}).narrow(0, begin, size);
  }
};

// Parts that lie side by side and have one owner, when some flat parameters stand one behind the
// other.
struct OwnedPiece {
  int owner = 0;
  std::int64_t begin = 0, size = 0;  // among these parameters
  std::vector<std::size_t> parts;    // their places in Division::parts()
};

class Division {
 public:
  Division(NamedTensors parameters, int rank, int world_size);

  int rank() const { return rank_; }
  const NamedTensors& parameters() const { return parameters_; }
  // The parts of all ranks, in the order of the parameters.
  const std::vector<OwnedPart>& parts() const { return parts_; }
  // The pieces of the parameters with these numbers, which are ascending.
  std::vector<OwnedPiece> PiecesOf(const std::vector<std::size_t>& parameters) const;
  bool Owns(const OwnedPart& part) const { return part.owner == rank_; }
  // This rank's parts, in that order: flat views, each with its parameter's name. They have
  // gradients of their own, which are not views of the parameters' gradients.
  const NamedTensors& own() const { return own_; }
  // From here on own() are tensors of their own, no longer views of the parameters.
  void Separate();
  // own()[own_of(i)] is part i, which this rank must own.
  std::size_t own_of(std::size_t part) const { return own_of_[part]; }

 private:
  int rank_;
  NamedTensors parameters_;
  std::vector<OwnedPart> parts_;
  NamedTensors own_;
  std::vector<std::size_t> own_of_;
};

// Statistics of whole parameters from those of each rank's own parts. A collective; every rank gets
// the same bits. Sums of squares are added in another order than over a whole tensor.
std::vector<kernels::TensorStats> StatsOverRanks(Communicator& communicator,
                                                 const Division& division,
                                                 const std::vector<kernels::TensorStats>& own);

}  // namespace trainwreck
