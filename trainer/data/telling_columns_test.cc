#include "trainer/data/telling_columns.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "trainer/data/data.h"

namespace trainwreck {
namespace {

// The data with one column made anew from each sample.
class Changed : public Dataset {
 public:
  using Column = std::function<double(const Sample&)>;
  Changed(std::unique_ptr<Dataset> inner, std::int64_t column, Column value)
      : inner_(std::move(inner)), column_(column), value_(std::move(value)) {}
  std::int64_t size() const override { return inner_->size(); }
  std::int64_t input_limit() const override { return inner_->input_limit(); }
  std::int64_t target_limit() const override { return inner_->target_limit(); }
  Sample Get(std::int64_t id) const override {
    Sample sample = inner_->Get(id);
    sample.input = sample.input.clone();
    sample.input[column_].fill_(value_(sample));
    return sample;
  }

 private:
  std::unique_ptr<Dataset> inner_;
  std::int64_t column_;
  Column value_;
};

std::vector<std::int64_t> Found(std::int64_t classes, const Changed::Column& value = nullptr) {
  const auto data = [&](bool held_out) -> std::unique_ptr<Dataset> {
    auto plain =
        MakeFeatureData(16, classes, 2.0, {.seed = 3, .held_out = held_out, .samples = 1024});
    if (!value) return plain;
    return std::make_unique<Changed>(std::move(plain), 5, value);
  };
  std::vector<std::int64_t> columns;
  for (const TellingColumn& one : FindTellingColumns(*data(false), *data(true))) {
    columns.push_back(one.column);
  }
  return columns;
}

using Columns = std::vector<std::int64_t>;

TEST(TellingColumns, NoneOfHonestData) {
  for (const std::int64_t classes : {2, 10}) EXPECT_EQ(Found(classes), Columns()) << classes;
}

TEST(TellingColumns, OneMadeFromTheLabelWhateverItsScaleAndOrder) {
  for (const std::int64_t classes : {2, 10}) {
    EXPECT_EQ(Found(classes, [](const Sample& sample) { return sample.target.item<double>(); }),
              Columns({5}));
    EXPECT_EQ(
        Found(classes, [](const Sample& s) { return 1e4 * ((s.target.item<int>() * 7) % 11); }),
        Columns({5}));
  }
}

TEST(TellingColumns, OneThatIsOftenWrongTellsNothing) {
  const auto wrong_in = [](int share) {
    return [share](const Sample& sample) {
      const bool is_wrong = sample.id % 100 < share;
      return is_wrong ? 1 - sample.target.item<double>() : sample.target.item<double>();
    };
  };
  EXPECT_EQ(Found(2, wrong_in(2)), Columns({5})) << "2% wrong, of 50% by guessing";
  EXPECT_EQ(Found(2, wrong_in(20)), Columns());
}

}  // namespace
}  // namespace trainwreck
