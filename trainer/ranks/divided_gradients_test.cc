// Gradients that each rank keeps its part of: that they are the means of whole ones.
#include "trainer/ranks/divided_gradients.h"

#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "trainer/optimizers/clipping.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

struct Options {
  int ranks;
  int micro_batches;
  std::int64_t bucket_bytes;
  bool in_thread;
};

// 330 elements, which neither 2 nor 4 ranks divide along the parameters' borders; no pass reaches
// the last parameter.
NamedTensors SomeParameters() {
  at::manual_seed(3);
  return {{"a", at::randn({7, 30}).set_requires_grad(true)},
          {"frozen", at::randn({20})},
          {"b", at::randn({60}).set_requires_grad(true)},
          {"c", at::randn({40}).set_requires_grad(true)}};
}

// Of another batch for each rank; rank 1 has one micro-batch less.
void Backward(const NamedTensors& parameters, int rank, int micro_batch, double weight) {
  at::manual_seed(100 * rank + micro_batch);
  at::Tensor loss = at::zeros({});
  for (const std::size_t i : {0, 2}) {
    const at::Tensor& parameter = parameters[i].second;
    loss = loss + parameter.mul(at::randn(parameter.sizes())).pow(2).sum();
  }
  loss.mul(weight).backward();
}

int OwnMicroBatches(const Options& options, int rank) {
  return options.micro_batches - (rank == 1 && options.micro_batches > 1 ? 1 : 0);
}

double DistanceOf(const Division& division, const NamedTensors& whole) {
  double distance = 0;
  for (std::size_t i = 0; i < division.parts().size(); ++i) {
    const OwnedPart& part = division.parts()[i];
    if (!division.Owns(part) || part.parameter == 1) continue;
    const at::Tensor own = division.own()[division.own_of(i)].second.grad();
    const at::Tensor expected = part.Of(whole[part.parameter].second.grad());
    distance = std::max(distance, own.sub(expected).abs().max().item<double>());
  }
  return distance;
}

std::string Compare(const Options& options, int rank, const std::string& place) {
  at::set_num_threads(1);  // a fork has none of its parent's other threads
  const auto communicator = MakeGlooCommunicator(
      {.rank = rank, .world_size = options.ranks, .rendezvous_file = place, .timeout_s = 20});
  const NamedTensors whole = SomeParameters(), divided = SomeParameters();
  const double share = 0.5 + rank, active = options.ranks;
  const int own = OwnMicroBatches(options, rank);
  for (int i = 0; i < own; ++i) Backward(whole, rank, i, share);
  std::vector<at::Tensor> gradients;
  for (const std::size_t i : {0, 2, 3}) gradients.push_back(GradientOf(whole[i].second));
  AllReduceMean(*communicator, gradients, options.bucket_bytes, active);

  const Division division(divided, rank, options.ranks);
  DividedGradients reduction(*communicator, division, options.bucket_bytes, options.in_thread);
  reduction.Begin(options.micro_batches, share, active);
  for (int i = 0; i < own; ++i) {
    Backward(divided, rank, i, 1);
    reduction.EndMicroBatch();
  }
  reduction.Finish();
  for (const auto& [name, parameter] : divided) {
    if (parameter.grad().defined()) return "the gradient of " + name + " is whole";
  }
  if (const double distance = DistanceOf(division, whole); distance > 1e-5) {
    return "differs by " + std::to_string(distance);
  }
  const auto stats = StatsOverRanks(*communicator, division, GradientStats(division.own()));
  const auto expected = GradientStats(whole);
  for (std::size_t i = 0; i < stats.size(); ++i) {
    if (stats[i].count != expected[i].count || stats[i].zeros != expected[i].zeros ||
        std::abs(stats[i].norm() - expected[i].norm()) > 1e-6 * expected[i].norm() ||
        std::abs(stats[i].max_abs - expected[i].max_abs) > 1e-5) {
      return "other statistics of " + whole[i].first;
    }
  }
  communicator->Barrier();
  return "same";
}

TEST(DividedGradients, AreTheMeansOfWholeOnes) {
  for (const Options& options :
       {Options{1, 1, 1 << 20, false}, Options{2, 1, 1 << 20, false}, Options{2, 1, 1, false},
        Options{4, 3, 500, false}, Options{4, 2, 1 << 20, true}}) {
    ScratchFolder folder;
    const auto ends = RunForked(
        options.ranks, [&](int rank) { return Compare(options, rank, folder.File("meet")); });
    for (const RankEnd& end : ends) {
      EXPECT_EQ(end.output, "same") << options.ranks << " ranks, " << options.micro_batches
                                    << " micro-batches, buckets of " << options.bucket_bytes;
    }
  }
}

TEST(DividedGradients, AreFreedWhileTheBackwardPassGoesOn) {
  const auto communicator = MakeLocalCommunicator();
  const NamedTensors parameters = {{"first", at::randn({4}).set_requires_grad(true)},
                                   {"last", at::randn({4}).set_requires_grad(true)}};
  const Division division(parameters, 0, 1);
  DividedGradients reduction(*communicator, division, /*bucket_bytes=*/16);
  reduction.Begin(/*micro_batches=*/1, 1, 1);
  bool is_freed = false;
  at::Tensor out = parameters[0].second.mul(2);
  out.register_hook([&](const at::Tensor&) {
    is_freed = !parameters[1].second.grad().defined() && division.own()[1].second.grad().defined();
  });
  out.mul(parameters[1].second).sum().backward();
  reduction.EndMicroBatch();
  EXPECT_TRUE(is_freed);
}

// One rank, whose calls take a while.
class Slow : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  void AllReduce(at::Tensor&, Reduction) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  void Broadcast(at::Tensor&, int) override {}
  void Barrier() override {}
};

TEST(DividedGradients, WaitAtTheEndOfEachMicroBatch) {
  Slow communicator;
  const NamedTensors parameters = SomeParameters();
  const Division division(parameters, 0, 1);
  DividedGradients reduction(communicator, division, /*bucket_bytes=*/1, /*in_thread=*/true);
  reduction.Begin(/*micro_batches=*/2, 1, 1);
  for (int i = 0; i < 2; ++i) {
    Backward(parameters, /*rank=*/0, i, 1);
    reduction.EndMicroBatch();
  }
  reduction.Finish();
  EXPECT_GT(reduction.waited_s(), 0.6 * reduction.busy_s());
  EXPECT_LT(reduction.waited_s(), 1.4 * reduction.busy_s());
}

}  // namespace
}  // namespace trainwreck
