// Masters and the update in the backward pass against the plain rule.
#include "trainer/optimizers/master_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "trainer/optimizers/in_backward.h"
#include "trainer/optimizers/optimizers.h"

namespace trainwreck {
namespace {

std::unique_ptr<Optimizer> AdamWOf(NamedTensors parameters) {
  return MakeAdamW(std::move(parameters), {.weight_decay = 0.1, .no_decay = "b"});
}

std::unique_ptr<Optimizer> PlainSgdOf(NamedTensors parameters) {
  return MakeSgd(std::move(parameters), {});
}

NamedTensors OnesOf(at::ScalarType type) {
  return {{"a", at::ones({3}, type).set_requires_grad(true)},
          {"b", at::ones({2, 2}, type).set_requires_grad(true)}};
}

NamedTensors NoiseOf(at::ScalarType type) {
  at::manual_seed(5);
  NamedTensors parameters = OnesOf(type);
  for (auto& [name, parameter] : parameters) parameter.detach().normal_();
  return parameters;
}

// Gradients of which each element is another one.
at::Tensor LossOf(const NamedTensors& parameters, int step) {
  at::Tensor loss = at::full({}, 0.0);
  for (const auto& [name, parameter] : parameters) {
    loss = loss + (parameter.to(at::kFloat).pow(2) * (1 + step)).sin().sum();
  }
  return loss;
}

void ExpectEqual(const NamedTensors& expected, const NamedTensors& actual) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(expected[i].second, actual[i].second)) << expected[i].first;
  }
}

void Train(Optimizer& optimizer, const NamedTensors& parameters, int begin, int end) {
  for (int step = begin; step < end; ++step) {
    optimizer.ZeroGrad();
    LossOf(parameters, step).backward();
    optimizer.Step(0.01);
  }
}

// 1 - 0.001 is nearer to 1 than to the next number of bf16, and ten of these steps are not.
TEST(MasterWeightsTest, KeepWhatRoundingTakesFromTheParameters) {
  const auto moved = [](bool with_masters) {
    const NamedTensors parameters = OnesOf(at::kBFloat16);
    const auto optimizer =
        with_masters ? WithMasters(parameters, PlainSgdOf) : PlainSgdOf(parameters);
    for (int step = 0; step < 10; ++step) {
      optimizer->ZeroGrad();
      parameters[0].second.sum().backward();
      optimizer->Step(0.001);
    }
    return 1 - parameters[0].second[0].item<double>();
  };
  EXPECT_EQ(moved(false), 0);
  EXPECT_NEAR(moved(true), 0.01, 0.002);
}

TEST(MasterWeightsTest, OfFp32ParametersChangeNoBit) {
  const NamedTensors plain = NoiseOf(at::kFloat), mastered = NoiseOf(at::kFloat);
  const auto expected = AdamWOf(plain), optimizer = WithMasters(mastered, AdamWOf);
  Train(*expected, plain, 0, 10);
  Train(*optimizer, mastered, 0, 10);
  ExpectEqual(plain, mastered);
}

// The sum of 1 and 1/512 needs more bits than bf16 has.
TEST(MasterWeightsTest, AddGradientsUpInFp32) {
  const NamedTensors parameters = OnesOf(at::kBFloat16);
  const at::Tensor& a = parameters[0].second;
  const auto optimizer = WithMasters(parameters, PlainSgdOf);
  optimizer->ZeroGrad();
  a.sum().backward();
  (a.sum() / 512).backward();
  EXPECT_EQ(a.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(a.grad()[0].item<double>(), 1 + 1.0 / 512);
  EXPECT_FALSE(parameters[1].second.grad().defined());
  optimizer->Step(1);
  StateDict state;
  optimizer->Save(state);
  EXPECT_EQ(state.at("optimizer.master.a")[0].item<double>(), -1.0 / 512);
  EXPECT_EQ(state.at("optimizer.master.b")[0][0].item<double>(), 1);
}

TEST(MasterWeightsTest, GoOnFromWhatWasSaved) {
  const NamedTensors whole = NoiseOf(at::kBFloat16), first = NoiseOf(at::kBFloat16);
  const auto uninterrupted = WithMasters(whole, AdamWOf), stopped = WithMasters(first, AdamWOf);
  Train(*uninterrupted, whole, 0, 10);
  Train(*stopped, first, 0, 4);
  StateDict state;
  stopped->Save(state);
  for (const bool with_masters : {true, false}) {
    NamedTensors second = OnesOf(at::kBFloat16);
    for (std::size_t i = 0; i < second.size(); ++i) {
      second[i].second.detach().copy_(first[i].second);
    }
    StateDict loaded;
    for (const auto& [name, tensor] : state) {
      if (with_masters || !name.starts_with("optimizer.master.")) loaded[name] = tensor.clone();
    }
    const auto optimizer = WithMasters(second, AdamWOf);
    optimizer->Load(loaded);
    EXPECT_EQ(ElementsOffMaster(second, *optimizer), 0);
    Train(*optimizer, second, 4, 10);
    if (with_masters) {
      ExpectEqual(whole, second);
    } else {  // made anew of what was rounded
      EXPECT_FALSE(at::equal(whole[1].second, second[1].second));
      EXPECT_TRUE(at::allclose(whole[1].second, second[1].second, 0.05, 0.05));
    }
  }
}

TEST(MasterWeightsTest, CountsTheElementsThatAreOffTheirMaster) {
  const NamedTensors parameters = NoiseOf(at::kBFloat16);
  const auto optimizer = WithMasters(parameters, AdamWOf);
  Train(*optimizer, parameters, 0, 3);
  EXPECT_EQ(ElementsOffMaster(parameters, *optimizer), 0);
  parameters[1].second.detach()[1].add_(1);
  EXPECT_EQ(ElementsOffMaster(parameters, *optimizer), 2);
  EXPECT_FALSE(ElementsOffMaster(parameters, *AdamWOf(parameters)).has_value());
}

// As the loop does it.
class InBackward {
 public:
  explicit InBackward(NamedTensors parameters, const MakeOptimizer& make = AdamWOf)
      : parameters_(std::move(parameters)),
        optimizer_(OptimizerForEach(parameters_, make)),
        hooks_(parameters_, [this](std::size_t i) {
          ++updates_;
          optimizer_->Step(0.01);
          parameters_[i].second.mutable_grad().reset();
        }) {}

  void Train(int begin, int end) {
    for (int step = begin; step < end; ++step) LossOf(parameters_, step).backward();
  }
  Optimizer& optimizer() { return *optimizer_; }
  int updates() const { return updates_; }

 private:
  NamedTensors parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  int updates_ = 0;
  GradientHooks hooks_;
};

TEST(InBackwardTest, EqualsTheUpdateAfterTheBackwardPass) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto make = [type](NamedTensors some) {
      return type == at::kFloat ? AdamWOf(std::move(some)) : WithMasters(std::move(some), AdamWOf);
    };
    const NamedTensors after = NoiseOf(type), within = NoiseOf(type);
    Train(*make(after), after, 0, 10);
    InBackward in_backward(within, make);
    in_backward.Train(0, 10);
    ExpectEqual(after, within);
    EXPECT_EQ(in_backward.updates(), 20);
    EXPECT_FALSE(within[0].second.grad().defined());
  }
}

TEST(InBackwardTest, GoesOnFromWhatWasSaved) {
  const NamedTensors whole = NoiseOf(at::kFloat), parts = NoiseOf(at::kFloat);
  InBackward(whole).Train(0, 10);
  StateDict state;
  {
    InBackward first(parts);
    first.Train(0, 4);
    first.optimizer().Save(state);
    EXPECT_EQ(state.at("optimizer.step.a").item<float>(), 4);
    EXPECT_FALSE(state.contains("optimizer.step"));
  }
  InBackward second(parts);
  second.optimizer().Load(state);
  second.Train(4, 10);
  ExpectEqual(whole, parts);
}

TEST(InBackwardTest, GoesOnFromTheCheckpointOfOneOptimizer) {
  const NamedTensors whole = NoiseOf(at::kFloat), parts = NoiseOf(at::kFloat);
  Train(*AdamWOf(whole), whole, 0, 10);
  const auto first = AdamWOf(parts);
  Train(*first, parts, 0, 4);
  for (const auto& [name, parameter] : parts) parameter.mutable_grad().reset();
  StateDict state;
  first->Save(state);
  InBackward second(parts);
  second.optimizer().Load(state);
  second.Train(4, 10);
  ExpectEqual(whole, parts);
}

TEST(InBackwardTest, HooksLiveAsLongAsTheirOwner) {
  const NamedTensors parameters = NoiseOf(at::kFloat);
  parameters[1].second.set_requires_grad(false);
  {
    InBackward in_backward(parameters);
    EXPECT_TRUE(GradientHooks::IsOn(parameters[0].second));
    EXPECT_FALSE(GradientHooks::IsOn(parameters[1].second));
  }
  EXPECT_FALSE(GradientHooks::IsOn(parameters[0].second));
}

}  // namespace
}  // namespace trainwreck
