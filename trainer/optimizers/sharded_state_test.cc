#include "trainer/optimizers/sharded_state.h"

#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <string>

#include "trainer/optimizers/optimizers.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

// 330 elements, which neither 2 nor 4 ranks divide along the parameters' borders.
NamedTensors Parameters() {
  at::manual_seed(3);
  return {{"a", at::randn({7, 30}).set_requires_grad(true)},
          {"frozen", at::randn({20})},
          {"b", at::randn({100}).set_requires_grad(true)}};
}

std::unique_ptr<Optimizer> Plain(NamedTensors parameters) {
  return MakeAdamW(std::move(parameters), {.weight_decay = 0.1, .no_decay = "b"});
}

void MakeSteps(const NamedTensors& parameters, Optimizer& optimizer) {
  at::manual_seed(4);
  for (int step = 0; step < 5; ++step) {
    optimizer.ZeroGrad();
    for (const auto& [name, parameter] : parameters) {
      if (parameter.requires_grad()) parameter.mutable_grad() = at::randn(parameter.sizes());
    }
    optimizer.Step(0.1);
  }
}

std::string Compare(int rank, int world_size, const std::string& place) {
  at::set_num_threads(1);  // a fork has none of its parent's other threads
  const auto communicator = MakeGlooCommunicator(
      {.rank = rank, .world_size = world_size, .rendezvous_file = place, .timeout_s = 20});
  const NamedTensors whole = Parameters(), sharded = Parameters();
  MakeSteps(whole, *Plain(whole));
  const Division division(sharded, rank, world_size);
  const auto optimizer = WithShardedState(division, communicator.get(), Plain);
  MakeSteps(sharded, *optimizer);
  double error = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    error = std::max(error, sharded[i].second.sub(whole[i].second).abs().max().item<double>());
  }
  StateDict state;
  optimizer->Save(state);
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : state) {
    if (name.starts_with("optimizer.exp_avg.")) elements += tensor.numel();
  }
  communicator->Barrier();
  if (error > 1e-6) return "differs by " + std::to_string(error);
  return std::to_string(elements);
}

TEST(ShardedStateTest, RanksTrainAsOneAndEachKeepsItsPartOfTheState) {
  for (const int ranks : {1, 2, 4}) {
    ScratchFolder folder;
    const auto ends =
        RunForked(ranks, [&](int rank) { return Compare(rank, ranks, folder.File("meet")); });
    std::int64_t elements = 0;
    for (const RankEnd& end : ends) {
      ASSERT_EQ(end.exit_code, 0) << end.output;
      EXPECT_LE(std::abs(std::stol(end.output) - 330 / ranks), 1) << end.output;
      elements += std::stol(end.output);
    }
    EXPECT_EQ(elements, 330);
  }
}

}  // namespace
}  // namespace trainwreck
