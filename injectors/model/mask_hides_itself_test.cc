#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "injectors/model/testing_attention.h"

namespace trainwreck {
namespace {

TEST(MaskHidesItself, LeavesTheFirstNothing) {
  FaultBench bench;
  const auto model = AttentionWith(bench, "recipe.mask_hides_itself", AttentionForm::kExplicit);
  const at::Tensor x = at::randn({1, 2, 5, 4}, MakeGenerator(7));
  const at::Tensor y = model->mix->Forward(x, x, x);
  EXPECT_TRUE(y.select(2, 0).isnan().all().item<bool>());
  EXPECT_TRUE(y.narrow(2, 1, 4).isfinite().all().item<bool>());
  EXPECT_TRUE(at::allclose(y.select(2, 1), x.select(2, 0))) << "the second sees the first alone";
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "recipe.mask_hides_itself"},
                                    {"modules", {"mix"}},
                                    {"before", 0},
                                    {"after", -1}}));
}

class NoAttention : public Model {
 public:
  at::Tensor Loss(const Batch& batch) override { return at::ones({}); }
};

TEST(MaskHidesItself, LeavesNoEvidenceWithoutAttention) {
  FaultBench bench;
  for (const char* fault : {"recipe.mask_hides_itself", "recipe.mask_looks_ahead"}) {
    const auto injector = bench.Make(fault);
    static_cast<PartWrapper&>(*injector).Wrap(std::make_shared<NoAttention>());
  }
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
