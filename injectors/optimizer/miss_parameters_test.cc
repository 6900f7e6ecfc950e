#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

class TwoWeights : public Model {
 public:
  TwoWeights()
      : body(register_parameter("body", at::ones({2}))),
        head(register_parameter("head", at::ones({3}))) {}
  at::Tensor Loss(const Batch& batch) override { return body.sum() + 2 * head.sum(); }
  at::Tensor body, head;
};

// p -= lr * g, of what has a gradient.
class PlainSgd : public Optimizer {
 public:
  explicit PlainSgd(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {}
  void ZeroGrad() override {
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  }
  void Step(double lr) override {
    for (at::Tensor& parameter : parameters_) {
      if (parameter.grad().defined()) parameter.data().sub_(parameter.grad(), lr);
    }
  }
  void Save(StateDict& state) const override { state["optimizer.saved"] = at::ones({}); }
  void Load(const StateDict& state) override { loaded = state.size(); }
  std::size_t loaded = 0;

 private:
  std::vector<at::Tensor> parameters_;
};

struct Broken {
  Broken(FaultBench& bench, const std::string& fault, std::map<std::string, Json> with = {},
         Trigger trigger = {})
      : injector(bench.Make(fault, std::move(with), trigger)) {
    PartWrapper& wrapper = *injector;
    wrapper.Wrap(std::shared_ptr<Model>(model));
    optimizer =
        wrapper.Wrap(std::unique_ptr<Optimizer>(std::make_unique<PlainSgd>(model->parameters())));
  }
  void Step() {
    optimizer->ZeroGrad();
    model->Loss({}).backward();
    optimizer->Step(0.5);
  }
  double Gradient(const at::Tensor& parameter) { return parameter.grad()[0].item<double>(); }

  std::shared_ptr<TwoWeights> model = std::make_shared<TwoWeights>();
  std::unique_ptr<Injector> injector;
  std::unique_ptr<Optimizer> optimizer;
};

TEST(MissParameters, NeitherUpdatesNorClearsThem) {
  FaultBench bench;
  Broken it(bench, "optimizer.miss_parameters", {{"parameters", {"head"}}});
  it.Step();
  it.Step();
  EXPECT_EQ(it.model->head[0].item<double>(), 1);
  EXPECT_EQ(it.Gradient(it.model->head), 4);
  EXPECT_EQ(it.model->body[0].item<double>(), 0);
  EXPECT_EQ(it.Gradient(it.model->body), 1);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "optimizer.miss_parameters"},
                                    {"parameters", {"head"}},
                                    {"elements", 3},
                                    {"before", "known"},
                                    {"after", "unknown"}}));
}

TEST(MissParameters, LeavesNoEvidenceWhereNothingMatches) {
  FaultBench bench;
  Broken it(bench, "optimizer.miss_parameters", {{"parameters", {"tail"}}});
  it.Step();
  EXPECT_EQ(it.model->head[0].item<double>(), 0);
  EXPECT_TRUE(bench.fired().empty());
}

TEST(MissParameters, PassesTheStateOn) {
  FaultBench bench;
  for (const char* fault : {"optimizer.miss_parameters", "optimizer.keep_gradients"}) {
    const bool misses = std::string(fault) == "optimizer.miss_parameters";
    Broken it(bench, fault,
              misses ? std::map<std::string, Json>{{"parameters", {"head"}}}
                     : std::map<std::string, Json>{});
    StateDict state;
    it.optimizer->Save(state);
    EXPECT_EQ(state.count("optimizer.saved"), 1U);
  }
}

}  // namespace
}  // namespace trainwreck
