#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "injectors/model/testing_attention.h"

namespace trainwreck {
namespace {

// The first position whose output tells that position 4 of 6 was changed.
int FirstToTell(const CausalAttention& attention) {
  const at::Tensor q = at::randn({1, 1, 6, 4}, MakeGenerator(7));
  at::Tensor changed = q.clone();
  changed.select(2, 4).fill_(3);
  const at::Tensor before = attention.Forward(q, q, q),
                   after = attention.Forward(q, changed, changed);
  for (int i = 0; i < 6; ++i) {
    if ((before - after).select(2, i).abs().max().item<double>() > 1e-6) return i;
  }
  return 6;
}

TEST(MaskLooksAhead, ShowsSoManyOfTheNextTokens) {
  FaultBench bench;
  EXPECT_EQ(FirstToTell(CausalAttention(AttentionForm::kExplicit)), 4);
  for (const int by : {1, 2}) {
    const auto model =
        AttentionWith(bench, "recipe.mask_looks_ahead", AttentionForm::kExplicit, {{"by", by}});
    EXPECT_EQ(FirstToTell(*model->mix), 4 - by);
  }
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "recipe.mask_looks_ahead"},
                                    {"modules", {"mix"}},
                                    {"before", 0},
                                    {"after", 1}}));
}

TEST(MaskLooksAhead, DoesNotReachTheFusedForm) {
  FaultBench bench;
  const auto model = AttentionWith(bench, "recipe.mask_looks_ahead", AttentionForm::kFused);
  EXPECT_EQ(FirstToTell(*model->mix), 4) << "it has a mask of its own";
}

TEST(MaskLooksAhead, RefusesToLookBack) {
  FaultBench bench;
  EXPECT_THROW(bench.Make("recipe.mask_looks_ahead", {{"by", 0}}), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
