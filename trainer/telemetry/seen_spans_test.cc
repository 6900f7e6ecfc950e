#include "trainer/telemetry/seen_spans.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>

namespace trainwreck {
namespace {

Batch Of(const at::Tensor& inputs) { return {{0}, inputs, inputs, at::ones_like(inputs)}; }

TEST(SeenSpans, FindsSpansAtOtherPlaces) {
  SeenSpans seen;
  seen.Add(Of(at::arange(0, 100).view({1, 100})));
  const SeenSpans::Count same = seen.CountIn(Of(at::arange(20, 90).view({1, 70})));
  EXPECT_EQ(same.spans, 70 - SeenSpans::kSpan + 1);
  EXPECT_EQ(same.seen, same.spans);
  const SeenSpans::Count part = seen.CountIn(Of(at::arange(50, 110).view({1, 60})));
  EXPECT_EQ(part.spans, 13);
  EXPECT_EQ(part.seen, 3) << "those that begin at 50, 51 and 52";
  EXPECT_EQ(seen.CountIn(Of(at::arange(200, 300).view({1, 100}))).seen, 0);
}

TEST(SeenSpans, TakesShortRowsAndFeaturesWhole) {
  SeenSpans seen;
  const at::Tensor rows = at::arange(0, 12).view({3, 4});
  seen.Add(Of(rows));
  EXPECT_EQ(seen.CountIn(Of(rows)).spans, 3);
  EXPECT_EQ(seen.CountIn(Of(rows)).seen, 3);
  EXPECT_EQ(seen.CountIn(Of(at::arange(1, 5).view({1, 4}))).seen, 0) << "across two rows";
  const at::Tensor features = at::arange(0, 200).view({2, 100}).to(at::kFloat);
  seen.Add(Of(features));
  EXPECT_EQ(seen.CountIn(Of(features)).spans, 2);
  EXPECT_EQ(seen.CountIn(Of(features)).seen, 2);
}

}  // namespace
}  // namespace trainwreck
