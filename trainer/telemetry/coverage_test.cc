// Parameters that a step leaves out: the audit, and runs that have it.
#include "trainer/telemetry/coverage.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/models/model.h"
#include "trainer/optimizers/clipping.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NamedTensors ThreeParameters() {
  NamedTensors parameters;
  for (const char* name : {"a", "b", "c"}) parameters.emplace_back(name, at::ones({2}));
  parameters[0].second.mutable_grad() = at::ones({2});
  parameters[1].second.mutable_grad() = at::zeros({2});
  return parameters;
}

TEST(CoverageAuditTest, NamesWhatGetsNoGradientOrNoUpdate) {
  NamedTensors parameters = ThreeParameters();
  CoverageAudit audit;
  audit.BeforeUpdate(parameters, GradientStats(parameters), "*");
  const CoverageGaps still = audit.AfterUpdate();
  EXPECT_THAT(still.without_gradient, ElementsAre("c"));
  EXPECT_THAT(still.without_update, ElementsAre("a")) << "a gradient of 0 moves nothing";
  audit.BeforeUpdate(parameters, GradientStats(parameters), "*");
  parameters[0].second.fill_(2);
  EXPECT_THAT(audit.AfterUpdate().without_update, IsEmpty());
  audit.BeforeUpdate(parameters, GradientStats(parameters), "b");
  EXPECT_THAT(audit.AfterUpdate().without_gradient, IsEmpty()) << "c is not meant to train";
}

// Updates all but the head.
class WithoutHead : public Optimizer {
 public:
  WithoutHead(std::unique_ptr<Optimizer> inner, Model& model)
      : inner_(std::move(inner)), head_(model.named_parameters()["head.weight"]) {}
  void ZeroGrad() override { inner_->ZeroGrad(); }
  void Step(double lr) override {
    at::Tensor gradient = head_.grad();
    head_.mutable_grad().reset();
    inner_->Step(lr);
    head_.mutable_grad() = gradient;
  }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 private:
  std::unique_ptr<Optimizer> inner_;
  at::Tensor head_;
};

class MissHead : public PartWrapper {
 public:
  using PartWrapper::Wrap;
  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    return std::make_unique<WithoutHead>(std::move(optimizer), *model_);
  }

 private:
  std::shared_ptr<Model> model_;
};

Outcome RunWithoutHead(const std::string& audit) {
  return RunOnce(With(Mlp(), {{"audit.coverage", audit}}), {"updated{head.weight}", "untrained"},
                 [] { return std::make_unique<MissHead>(); });
}

TEST(CoverageAuditTest, ARunReportsWhatItsOptimizerMisses) {
  const Outcome silent = RunWithoutHead("none");
  EXPECT_TRUE(silent.EventsOf("untrained").empty());
  const Outcome told = RunWithoutHead("report");
  ASSERT_EQ(told.EventsOf("untrained").size(), 1u);
  EXPECT_EQ(told.EventsOf("untrained")[0]["parameters"], Json({"head.weight"}));
  EXPECT_EQ(told.EventsOf("untrained")[0]["why"], "no update");
  EXPECT_EQ(told.Last("updated{head.weight}"), 0);
  EXPECT_EQ(BitsOf(told), BitsOf(silent));
  const Outcome sound = RunOnce(With(Mlp(), {{"audit.coverage", "stop"}}));
  EXPECT_TRUE(sound.EventsOf("untrained").empty());
  EXPECT_EQ(BitsOf(sound), BitsOf(RunOnce(Mlp())));
}

TEST(UntrainedSignalTest, CountsWhatTheOptimizerMissesButNoUpdateBelowItsRounding) {
  const std::vector<double> missed = RunWithoutHead("none").Values("untrained");
  EXPECT_EQ(missed, std::vector<double>(20, 1));
  const Recipe tiny = With(Mlp(), {{"optimizer.lr", 1e-12}});
  const Outcome still = RunOnce(tiny, {"updated{layers.0.weight}", "untrained"});
  EXPECT_EQ(still.Last("updated{layers.0.weight}"), 0);
  const std::vector<double> none = still.Values("untrained");
  EXPECT_EQ(none, std::vector<double>(20, 0));
}

TEST(CoverageAuditTest, StopsBeforeTheSecondStep) {
  const Outcome stopped = RunWithoutHead("stop");
  EXPECT_EQ(stopped.code, 3);
  EXPECT_EQ(stopped.trace.end_why.at(0), "guard");
  EXPECT_EQ(stopped.EventsOf("untrained").size(), 1u);
  EXPECT_TRUE(stopped.Values("loss").empty());
}

}  // namespace
}  // namespace trainwreck
