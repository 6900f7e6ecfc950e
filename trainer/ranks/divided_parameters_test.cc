// Parameters that are there while a pass needs them.
#include "trainer/ranks/divided_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <utility>

#include "trainer/models/model.h"
#include "trainer/models/models.h"
#include "trainer/ranks/communicator.h"
#include "trainer/tensor_views.h"

namespace trainwreck {
namespace {

Batch Features() {
  return {.ids = {0, 1},
          .inputs = at::randn({2, 8}),
          .targets = at::zeros({2}, at::kLong),
          .weights = at::ones({2})};
}

std::shared_ptr<Model> ThreeLayers() {
  ModelRecipe recipe;
  recipe.layers = 3;
  recipe.width = 8;
  recipe.layer_norm = true;
  return MakeMlp(recipe, /*features=*/8, /*classes=*/2, /*seed=*/5);
}

struct Divided {
  std::shared_ptr<Model> model = ThreeLayers();
  std::unique_ptr<Communicator> communicator = MakeLocalCommunicator();
  Division division{ParametersOf(*model), 0, 1};
  DividedParameters parameters{model, division, *communicator};

  bool IsThere(const std::string& name) const {
    for (const auto& [each, parameter] : division.parameters()) {
      if (each == name) return parameter.storage().nbytes() > 0;
    }
    throw std::out_of_range(name);
  }
};

TEST(DividedParametersTest, ReadingThemBetweenPassesIsAnError) {
  Divided divided;
  for (const auto& [name, parameter] : divided.division.parameters()) {
    EXPECT_FALSE(divided.IsThere(name));
    EXPECT_THROW(parameter.sum(), c10::Error) << name;
  }
  EXPECT_THROW(divided.model->Loss(Features()), std::logic_error);
}

TEST(DividedParametersTest, OneSectionAtATimeIsThereAndGradientsAreTheSame) {
  at::manual_seed(1);
  const Batch batch = Features();
  const auto whole = ThreeLayers();
  whole->Loss(batch).backward();

  // Notes, as each section begins, what was there before the next is.
  class Watcher : public ForwardHook {
   public:
    explicit Watcher(const Divided& divided) : divided_(divided) {}
    void OnOutput(const std::string& module, at::Tensor& output) override {
      if (module == "layers.1") {
        EXPECT_FALSE(divided_.IsThere("layers.0.weight"));
        EXPECT_TRUE(divided_.IsThere("layers.1.weight"));
        EXPECT_TRUE(divided_.IsThere("layers.norm0.weight")) << "no section has it";
        output.register_hook([this](const at::Tensor&) {
          saw_backward = true;
          EXPECT_TRUE(divided_.IsThere("layers.1.weight"));
          EXPECT_FALSE(divided_.IsThere("layers.2.weight"));
          EXPECT_FALSE(divided_.IsThere("head.weight"));
        });
      }
    }
    bool saw_backward = false;

   private:
    const Divided& divided_;
  };
  Divided divided;
  Watcher watcher(divided);
  HookScope scope(*divided.model, &watcher);
  {
    const DividedParameters::Pass pass(&divided.parameters);
    divided.model->Loss(batch).backward();
  }
  EXPECT_TRUE(watcher.saw_backward);
  const NamedTensors expected = ParametersOf(*whole);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, parameter] = divided.division.parameters()[i];
    EXPECT_TRUE(parameter.grad().equal(expected[i].second.grad())) << name;
    EXPECT_FALSE(divided.IsThere(name));
  }
}

TEST(DividedParametersTest, KeepsWhatIsWrittenWhileTheyAreWhole) {
  Divided divided;
  const NamedTensors fresh = ParametersOf(*ThreeLayers());
  using Use = DividedParameters::Use;
  for (const Use use : {Use::kRead, Use::kWritten}) {
    {
      at::NoGradGuard no_grad;
      const DividedParameters::Whole whole(&divided.parameters, use);
      for (const auto& named : divided.division.parameters()) at::Tensor(named.second).mul_(2);
    }
    const DividedParameters::Whole whole(&divided.parameters);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      const double factor = use == Use::kWritten ? 2 : 1;
      EXPECT_TRUE(divided.division.parameters()[i].second.equal(fresh[i].second.mul(factor)));
    }
  }
  const std::vector<std::uint64_t> digests = divided.parameters.Digests();
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    EXPECT_EQ(digests[i], DigestsOf({fresh[i].second.detach().mul(2)})[0]) << fresh[i].first;
  }
}

}  // namespace
}  // namespace trainwreck
