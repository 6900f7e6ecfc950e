#include "trainer/data/telling_columns.h"

#include <algorithm>
#include <cstddef>

namespace trainwreck {
namespace {

struct Table {
  std::vector<std::vector<float>> columns;  // [features][samples]
  std::vector<std::int64_t> labels;         // [samples]
};

Table TableOf(const Dataset& data) {
  Table table;
  for (std::int64_t id = 0; id < std::min(data.size(), kColumnSamples); ++id) {
    const Sample sample = data.Get(id);
    const at::Tensor input = sample.input.to(at::kFloat).contiguous();
    const auto* values = input.const_data_ptr<float>();
    table.columns.resize(static_cast<std::size_t>(input.numel()));
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      table.columns[column].push_back(values[column]);
    }
    table.labels.push_back(sample.target.item<std::int64_t>());
  }
  return table;
}

// How often each label occurs, and which does most.
class LabelCounts {
 public:
  explicit LabelCounts(std::int64_t labels) : counts_(static_cast<std::size_t>(labels)) {}
  void Add(std::int64_t label) { ++counts_.at(static_cast<std::size_t>(label)); }
  std::int64_t most_common() const {
    return std::max_element(counts_.begin(), counts_.end()) - counts_.begin();
  }

 private:
  std::vector<std::int64_t> counts_;
};

// The rule of one column.
class ColumnRule {
 public:
  ColumnRule(const std::vector<float>& values, const std::vector<std::int64_t>& labels,
             std::int64_t label_limit) {
    std::vector<float> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t bin = 1; bin < kColumnBins; ++bin) {
      bounds_.push_back(sorted[sorted.size() * bin / kColumnBins]);
    }
    bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
    std::vector<LabelCounts> counts(bounds_.size() + 1, LabelCounts(label_limit));
    for (std::size_t i = 0; i < values.size(); ++i) counts[BinOf(values[i])].Add(labels[i]);
    for (const LabelCounts& bin : counts) labels_.push_back(bin.most_common());
  }

  std::int64_t LabelOf(float value) const { return labels_[BinOf(value)]; }

 private:
  std::size_t BinOf(float value) const {
    return std::upper_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  }

  std::vector<float> bounds_;         // between bins, ascending
  std::vector<std::int64_t> labels_;  // of each bin
};

}  // namespace

std::vector<TellingColumn> FindTellingColumns(const Dataset& training, const Dataset& held_out) {
  const Table seen = TableOf(training), unseen = TableOf(held_out);
  if (seen.labels.empty() || unseen.labels.empty()) return {};
  const auto all = static_cast<double>(unseen.labels.size());
  LabelCounts labels(training.target_limit());
  for (const std::int64_t label : seen.labels) labels.Add(label);
  const auto guessed =
      std::count(unseen.labels.begin(), unseen.labels.end(), labels.most_common()) / all;
  std::vector<TellingColumn> telling;
  for (std::size_t column = 0; column < seen.columns.size(); ++column) {
    const ColumnRule rule(seen.columns[column], seen.labels, training.target_limit());
    std::int64_t hits = 0;
    for (std::size_t i = 0; i < unseen.labels.size(); ++i) {
      hits += rule.LabelOf(unseen.columns[column][i]) == unseen.labels[i];
    }
    const double right = static_cast<double>(hits) / all;
    if (1 - right <= kTellingMistakes * (1 - guessed)) {
      telling.push_back({static_cast<std::int64_t>(column), right});
    }
  }
  return telling;
}

}  // namespace trainwreck
