// Gradients that are reduced within the backward pass: when they are sent, and that they are the
// means that are made after it.
#include "trainer/ranks/overlapped_reduction.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>

#include "trainer/ranks/communicator.h"

namespace trainwreck {
namespace {

// Two ranks with the same gradients. Tells of each call before it is made.
class Twin : public Communicator {
 public:
  int rank() const override { return 0; }
  int world_size() const override { return 2; }
  void AllReduce(at::Tensor& tensor, Reduction) override {
    shapes.push_back(ShapeText(tensor) + " " + DtypeText(tensor));
    if (before_call) before_call();
    tensor.mul_(2);
  }
  void Broadcast(at::Tensor&, int) override {}
  void Barrier() override {}

  std::vector<std::string> shapes;
  std::function<void()> before_call;
};

at::Tensor Parameter(std::int64_t size) { return at::randn({size}).set_requires_grad(true); }

// A chain of layers: the backward pass reaches the last first.
struct Chain {
  NamedTensors parameters = {
      {"first", Parameter(4)}, {"middle", Parameter(4)}, {"last", Parameter(4)}};
  at::Tensor Loss() const {
    at::Tensor out = at::full({4}, 0.5);
    for (const auto& [name, parameter] : parameters) out = out.mul(parameter).tanh();
    return out.sum();
  }
  std::vector<at::Tensor> Gradients() const {
    std::vector<at::Tensor> gradients;
    for (const auto& [name, parameter] : parameters) gradients.push_back(parameter.grad().clone());
    return gradients;
  }
  void Clear() const {
    for (const auto& [name, parameter] : parameters) parameter.mutable_grad().reset();
  }
};

constexpr std::int64_t kOneEach = 16;  // bytes: each parameter is a bucket

// The first bucket is in its collective while the backward pass stands at the middle layer: each
// waits for the other. Without overlap this test would not end.
TEST(OverlappedReduction, SendsWhileTheBackwardPassGoesOn) {
  Twin ranks;
  Chain chain;
  std::latch both(2);
  ranks.before_call = [&] {
    if (ranks.shapes.size() == 1) both.arrive_and_wait();
  };
  OverlappedReduction reduction(ranks, chain.parameters, kOneEach);
  reduction.Begin(1, 1.0, 2.0);
  at::Tensor out = at::full({4}, 0.5).mul(chain.parameters[0].second);
  out.register_hook([&](const at::Tensor& gradient) {
    both.arrive_and_wait();
    return gradient;
  });
  out.mul(chain.parameters[1].second).tanh().mul(chain.parameters[2].second).sum().backward();
  reduction.Finish();
  EXPECT_EQ(ranks.shapes.size(), 3u);
}

TEST(OverlappedReduction, GivesTheBitsOfAReductionAfterwards) {
  for (const std::int64_t bytes : {std::int64_t{1}, 2 * kOneEach, std::int64_t{1} << 20}) {
    for (const int passes : {1, 3}) {
      Twin ranks, ranks_after;
      Chain chain;
      std::vector<at::Tensor> expected;
      for (int i = 0; i < passes; ++i) chain.Loss().backward();
      expected = chain.Gradients();
      for (at::Tensor& gradient : expected) gradient.mul_(0.7);
      AllReduceMean(ranks_after, expected, bytes, /*active=*/3);
      chain.Clear();

      OverlappedReduction reduction(ranks, chain.parameters, bytes);
      chain.Loss().backward();  // not begun: nothing is sent
      EXPECT_TRUE(ranks.shapes.empty());
      chain.Clear();
      reduction.Begin(passes, 0.7, 3);
      for (int i = 0; i < passes; ++i) chain.Loss().backward();
      reduction.Finish();
      const std::vector<at::Tensor> actual = chain.Gradients();
      for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_TRUE(actual[i].equal(expected[i]));
      EXPECT_EQ(ranks.shapes.size(), ranks_after.shapes.size());
      EXPECT_GT(reduction.busy_s(), 0);
    }
  }
}

TEST(OverlappedReduction, WaitsInTheEndForWhatNothingWentOnBeside) {
  Twin ranks;
  Chain chain;
  ranks.before_call = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  OverlappedReduction reduction(ranks, chain.parameters, kOneEach);
  reduction.Begin(1, 1.0, 1.0);
  chain.Loss().backward();
  reduction.Finish();
  EXPECT_GT(reduction.waited_s(), 0.6 * reduction.busy_s());
  EXPECT_LT(reduction.waited_s(), 1.4 * reduction.busy_s());
}

// A rank's peers send all buckets, whatever its own backward pass reached.
TEST(OverlappedReduction, SendsZerosForWhatTheBackwardPassDidNotReach) {
  Twin ranks;
  Chain chain;
  OverlappedReduction reduction(ranks, chain.parameters, kOneEach);
  reduction.Begin(1, 1.0, 1.0);
  chain.parameters[1].second.sum().backward();
  reduction.Finish();
  EXPECT_EQ(ranks.shapes.size(), 3u);
  EXPECT_TRUE(chain.parameters[0].second.grad().equal(at::full({4}, 0.0)));
  EXPECT_TRUE(chain.parameters[1].second.grad().equal(at::full({4}, 2.0)));
}

TEST(OverlappedReduction, GivesTheErrorOfACollective) {
  Twin ranks;
  Chain chain;
  ranks.before_call = [] { throw std::runtime_error("the peer is gone"); };
  OverlappedReduction reduction(ranks, chain.parameters, kOneEach);
  reduction.Begin(1, 1.0, 1.0);
  chain.Loss().backward();
  EXPECT_THROW(reduction.Finish(), std::runtime_error);
}

TEST(SentDtype, RoundsWhatIsSentAndNothingElse) {
  Twin ranks;
  std::vector<at::Tensor> gradients = {at::full({3}, 1.0 + 1.0 / 512), at::full({2}, 3.0)};
  AllReduceMean(ranks, gradients, 1 << 20, /*active=*/2, at::kBFloat16);
  EXPECT_EQ(ranks.shapes, (std::vector<std::string>{"[5] bfloat16"}));
  EXPECT_EQ(gradients[0].scalar_type(), at::kFloat);
  EXPECT_TRUE(gradients[0].equal(at::full({3}, 1.0))) << "8 bits of mantissa";
  EXPECT_TRUE(gradients[1].equal(at::full({2}, 3.0)));
}

}  // namespace
}  // namespace trainwreck
