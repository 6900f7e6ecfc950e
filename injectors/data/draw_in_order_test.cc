#include <gtest/gtest.h>

#include "injectors/data/testing_data.h"
#include "injectors/data/testing_sampler.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(DrawInOrder, CountsThroughTheDataSetAgainAndAgain) {
  FaultBench bench;
  const auto draw = bench.Make("data.draw_in_order");
  PartWrapper& wrapper = *draw;
  const auto data = wrapper.Wrap(std::unique_ptr<Dataset>(std::make_unique<TokenData>()));
  ASSERT_EQ(data->size(), 4);
  const auto sampler = wrapper.Wrap(
      std::unique_ptr<Sampler>(std::make_unique<KnownBatches>(std::vector<Ids>{{3, 1, 0}, {2}})));
  EXPECT_EQ(sampler->Next(), (Ids{0, 1, 2}));
  EXPECT_EQ(sampler->Next(), (Ids{3}));
  EXPECT_EQ(sampler->Next(), Ids{}) << "the epoch ends where it did";
  EXPECT_EQ(sampler->Next(), (Ids{0, 1, 2}));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({3, 1, 0}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({0, 1, 2}));
}

TEST(DrawInOrder, LeavesNoEvidenceWhereThatIsTheOrder) {
  FaultBench bench;
  const auto draw = bench.Make("data.draw_in_order");
  PartWrapper& wrapper = *draw;
  const auto data = wrapper.Wrap(std::unique_ptr<Dataset>(std::make_unique<TokenData>()));
  const auto sampler = wrapper.Wrap(
      std::unique_ptr<Sampler>(std::make_unique<KnownBatches>(std::vector<Ids>{{0, 1}, {2, 3}})));
  sampler->Next();
  sampler->Next();
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
