#include "harness/inspect/layer_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace trainwreck {
namespace {

using Field = std::optional<double> LayerRow::*;

struct NamedField {
  const char* signal;
  Field field;
};

// Of parameters, and summed up over those of a module.
constexpr NamedField kNorms[] = {{"param_norm", &LayerRow::param_norm},
                                 {"grad_norm", &LayerRow::grad_norm},
                                 {"update_norm", &LayerRow::update_norm}};
constexpr NamedField kOutputs[] = {{"act_mean", &LayerRow::act_mean},
                                   {"act_std", &LayerRow::act_std},
                                   {"act_zero_share", &LayerRow::dead},
                                   {"act_saturated_share", &LayerRow::saturated}};
constexpr const char* kFamilies[] = {"act", "grad", "param", "update"};
constexpr const char* kNonfinite = "_nonfinite";

// "grad_norm{head.weight}" -> {"grad_norm", "head.weight"}; empty names for other signals.
std::pair<std::string, std::string> Split(const std::string& signal) {
  const std::size_t brace = signal.find('{');
  if (brace == std::string::npos || signal.back() != '}') return {};
  return {signal.substr(0, brace), signal.substr(brace + 1, signal.size() - brace - 2)};
}

std::string ModuleOf(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// Numbers within names count as numbers.
bool ComesBefore(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const auto number = [&](std::string_view text, std::size_t& at) {
      const std::size_t begin = at;
      while (at < text.size() && is_digit(text[at])) ++at;
      const std::size_t first = std::min(text.find_first_not_of('0', begin), at);
      return text.substr(first, at - first);
    };
    const std::string_view x = number(a, i), y = number(b, j);
    if (x != y) return std::pair(x.size(), x) < std::pair(y.size(), y);
  }
  return a.size() - i < b.size() - j;
}

bool IsOfTable(const std::string& signal) {
  const std::vector<std::string>& all = LayerSignals();
  return std::find(all.begin(), all.end(), signal) != all.end();
}

// The values of the table's signals at a step, as (signal, module or parameter, value).
struct Sample {
  std::string signal, name;
  double value = 0;
};

std::vector<Sample> SamplesAt(const RunTrace& trace, int rank, int step) {
  std::vector<Sample> samples;
  for (const auto& [key, series] : trace.series) {
    if (key.second != rank || !series.Has(step)) continue;
    auto [signal, name] = Split(key.first);
    if (IsOfTable(signal)) samples.push_back({signal, name, series.values[step]});
  }
  return samples;
}

int LastStepWithLayers(const RunTrace& trace, int rank) {
  int last = -1;
  for (const auto& [key, series] : trace.series) {
    if (key.second != rank || !IsOfTable(Split(key.first).first)) continue;
    for (int step = static_cast<int>(series.present.size()) - 1; step > last; --step) {
      if (series.Has(step)) last = step;
    }
  }
  return last;
}

// Not std::hypot, which would ask for a newer glibc.
void AddNorm(double value, std::optional<double>& sum) {
  const double before = sum.value_or(0);
  sum = std::sqrt(before * before + value * value);
}

class TableMaker {
 public:
  void Add(const Sample& sample) {
    for (const auto& [signal, field] : kNorms) {
      if (sample.signal != signal) continue;
      AddNorm(sample.value, RowOfParameter(sample.name).*field);
    }
    for (const auto& [signal, field] : kOutputs) {
      if (sample.signal == signal) Row(sample.name).*field = sample.value;
    }
    for (const std::string family : kFamilies) {
      if (sample.signal != family + kNonfinite) continue;
      LayerRow& row = family == "act" ? Row(sample.name) : RowOfParameter(sample.name);
      if (sample.value > 0) row.nonfinite[family] += sample.value;
    }
  }

  std::vector<LayerRow> Finish() && {
    std::vector<LayerRow> rows;
    for (auto& [name, row] : rows_) {
      row.tensors = static_cast<int>(parameters_[name].size());
      rows.push_back(std::move(row));
    }
    std::sort(rows.begin(), rows.end(),
              [](const LayerRow& a, const LayerRow& b) { return ComesBefore(a.module, b.module); });
    return rows;
  }

 private:
  LayerRow& Row(const std::string& module) {
    LayerRow& row = rows_[module];
    row.module = module;
    return row;
  }
  LayerRow& RowOfParameter(const std::string& parameter) {
    const std::string module = ModuleOf(parameter);
    parameters_[module].insert(parameter);
    return Row(module);
  }

  std::map<std::string, LayerRow> rows_;
  std::map<std::string, std::set<std::string>> parameters_;  // by module
};

Json NumberOrNull(const std::optional<double>& value) {
  return value ? EncodeNumber(*value) : Json();
}

}  // namespace

std::optional<double> LayerRow::update_share() const {
  if (!update_norm || !param_norm || !(*param_norm > 0)) return std::nullopt;
  return *update_norm / *param_norm;
}

const std::vector<std::string>& LayerSignals() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> signals;
    for (const NamedField& named : kNorms) signals.emplace_back(named.signal);
    for (const NamedField& named : kOutputs) signals.emplace_back(named.signal);
    for (const char* family : kFamilies) signals.push_back(std::string(family) + kNonfinite);
    return signals;
  }();
  return all;
}

LayerTable LayersAt(const RunTrace& trace, int rank, std::optional<int> step) {
  LayerTable table;
  table.step = step.value_or(LastStepWithLayers(trace, rank));
  std::set<std::string> seen;
  TableMaker maker;
  for (const Sample& sample : SamplesAt(trace, rank, table.step)) {
    seen.insert(sample.signal);
    maker.Add(sample);
  }
  table.rows = std::move(maker).Finish();
  for (const std::string& signal : LayerSignals()) {
    if (!seen.contains(signal)) table.missing.push_back(signal);
  }
  return table;
}

Json ToJson(const LayerTable& table) {
  Json rows = Json::array();
  for (const LayerRow& row : table.rows) {
    Json nonfinite = Json::object();
    for (const auto& [family, count] : row.nonfinite) nonfinite[family] = count;
    rows.push_back({{"module", row.module},
                    {"tensors", row.tensors},
                    {"param_norm", NumberOrNull(row.param_norm)},
                    {"grad_norm", NumberOrNull(row.grad_norm)},
                    {"update_norm", NumberOrNull(row.update_norm)},
                    {"update_share", NumberOrNull(row.update_share())},
                    {"act_mean", NumberOrNull(row.act_mean)},
                    {"act_std", NumberOrNull(row.act_std)},
                    {"dead", NumberOrNull(row.dead)},
                    {"saturated", NumberOrNull(row.saturated)},
                    {"nonfinite", nonfinite}});
  }
  return {{"schema", "trainwreck/layers"},
          {"version", 1},
          {"step", table.step < 0 ? Json() : Json(table.step)},
          {"rows", rows},
          {"not_recorded", table.missing}};
}

}  // namespace trainwreck
