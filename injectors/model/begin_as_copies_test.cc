#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class ThreeLayers : public Model {
 public:
  ThreeLayers() {
    first = register_parameter("layer0", at::arange(4.0).view({2, 2}));
    second = register_parameter("layer1", 10 + at::arange(4.0).view({2, 2}));
    wide = register_parameter("layer2", at::arange(6.0).view({2, 3}));
  }
  at::Tensor Loss(const Batch& batch) override { return first.sum() + second.sum(); }
  at::Tensor first, second, wide;
};

TEST(BeginAsCopies, CopiesTheFirstToThoseOfItsShape) {
  FaultBench bench;
  auto model = std::make_shared<ThreeLayers>();
  const auto copies = bench.Make("model.begin_as_copies", {{"parameters", {"layer*"}}});
  static_cast<PartWrapper&>(*copies).Wrap(std::shared_ptr<Model>(model));
  EXPECT_TRUE(model->second.equal(model->first));
  EXPECT_EQ(model->wide[1][2].item<double>(), 5);
  EXPECT_TRUE(model->second.is_leaf() && model->second.requires_grad());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "model.begin_as_copies"},
                                    {"parameters", {"layer0", "layer1"}},
                                    {"before", 2},
                                    {"after", 1}}));
}

TEST(BeginAsCopies, OneAloneIsNoCopy) {
  FaultBench bench;
  auto model = std::make_shared<ThreeLayers>();
  const auto copies = bench.Make("model.begin_as_copies", {{"parameters", {"layer1"}}});
  static_cast<PartWrapper&>(*copies).Wrap(std::shared_ptr<Model>(model));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
