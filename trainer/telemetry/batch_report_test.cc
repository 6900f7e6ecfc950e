#include "trainer/telemetry/batch_report.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/data/tokenizer.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

TEST(DescribeBatchTest, HasTextShapesMasksAndStatistics) {
  Batch batch;
  batch.ids = {7, 9};
  batch.inputs = at::tensor({'H', 'i', 200, '!'}, at::kLong).view({2, 2});
  batch.targets = at::tensor({'i', 'x', '!', '\n'}, at::kLong).view({2, 2});
  batch.weights = at::tensor({1.0, 0.0, 1.0, 0.5}).to(at::kFloat).view({2, 2});
  const Tokenizer bytes;
  const Json json = DescribeBatch(batch, 1, &bytes);
  EXPECT_NO_THROW(events::kBatch.Check(json));
  EXPECT_EQ(json["micro_batch"], 1);
  EXPECT_EQ(json["tensors"].size(), 3u) << "no documents";
  EXPECT_EQ(json["tensors"]["inputs"]["shape"], Json({2, 2}));
  EXPECT_EQ(json["tensors"]["inputs"]["dtype"], "Long");
  EXPECT_EQ(json["tensors"]["inputs"]["max"], 200);
  EXPECT_EQ(json["tensors"]["weights"]["mean"], 0.625);
  ASSERT_EQ(json["samples"].size(), 2u);
  EXPECT_EQ(json["samples"][0]["id"], 7);
  EXPECT_EQ(json["samples"][0]["text"], "Hi");
  EXPECT_EQ(json["samples"][1]["text"], "?!");
  EXPECT_EQ(json["samples"][0]["targets"], Json({'i', 'x'}));
  EXPECT_EQ(json["samples"][1]["weights"], Json({1.0, 0.5}));
}

TEST(DescribeBatchTest, CountsWhatIsNotFiniteAndStaysSmall) {
  Batch batch;
  for (int i = 0; i < 40; ++i) batch.ids.push_back(i);
  batch.inputs = at::full({40, 1000}, 0.25);
  batch.inputs[3][5] = NAN;
  batch.targets = at::ones({40}, at::kLong);
  batch.weights = at::ones({40});
  const Json json = DescribeBatch(batch, 0, /*tokenizer=*/nullptr);
  EXPECT_EQ(json["tensors"]["inputs"]["nonfinite"], 1);
  EXPECT_EQ(json["tensors"]["inputs"]["mean"], 0.25);
  EXPECT_EQ(json["samples"].size(), 16u);
  EXPECT_EQ(json["left_out"], 24);
  EXPECT_EQ(json["samples"][3]["inputs"][5], "nan");
  EXPECT_EQ(json["samples"][3]["targets"], Json::array({1}));
  EXPECT_FALSE(json["samples"][3].contains("text"));
  EXPECT_LT(json.dump().size(), 1u << 20) << "a record";
}

TEST(DescribeBatchTest, IsReportedOfEachMicroBatchWhereThePlanAsks) {
  const Recipe recipe = With(Gpt(), {{"steps", 2}, {"accumulation", 2}});
  const Outcome plain = RunOnce(recipe);
  EXPECT_TRUE(plain.EventsOf("batch").empty());
  const Outcome asked = RunOnce(recipe, {"batch"});
  EXPECT_EQ(asked.EventsOf("batch").size(), 4u);
  EXPECT_EQ(BitsOf(asked), BitsOf(plain));
}

}  // namespace
}  // namespace trainwreck
