#include "harness/matrix/diagnosis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace trainwreck {
namespace {

using formula::Truth;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Natural logarithms of terms to that of their mean.
double LogMeanExp(const std::vector<double>& terms) {
  const double largest = *std::max_element(terms.begin(), terms.end());
  double sum = 0;
  for (double term : terms) sum += std::exp(term - largest);
  return largest + std::log(sum / static_cast<double>(terms.size()));
}

}  // namespace

Json ToJson(const Signature& signature) {
  Json counts = Json::array();
  for (const Count& count : signature.counts) counts.push_back({count.holds, count.fails});
  return {{"name", signature.name},
          {"row", signature.row},
          {"ranks", signature.reach.ranks},
          {"phases", signature.reach.phases},
          {"counts", counts}};
}

Signature SignatureFromJson(const Json& json) {
  Signature signature;
  signature.name = json.at("name").get<std::string>();
  signature.row = json.at("row").get<std::string>();
  signature.reach = {.ranks = json.at("ranks").get<bool>(),
                     .phases = json.at("phases").get<bool>()};
  for (const Json& count : json.at("counts")) {
    signature.counts.push_back({count.at(0).get<int>(), count.at(1).get<int>(), 0});
  }
  return signature;
}

// The overall rate of a clue gives every signature the same weight, however many runs it has.
Diagnosis::Diagnosis(std::vector<Signature> signatures, double alarm_bits)
    : signatures_(std::move(signatures)), alarm_bits_(alarm_bits) {
  const std::size_t clues = signatures_.empty() ? 0 : signatures_.front().counts.size();
  for (std::size_t clue = 0; clue < clues; ++clue) {
    double sum = 0.5, weight = 1;
    for (const Signature& signature : signatures_) {
      const Count& count = signature.counts[clue];
      if (count.known() == 0) continue;
      sum += static_cast<double>(count.holds) / count.known();
      weight += 1;
    }
    overall_.push_back(sum / weight);
  }
}

// As if one more run had been seen, in which the clue held as often as it does everywhere.
double Diagnosis::RateIn(const Signature& signature, std::size_t clue) const {
  const Count& count = signature.counts[clue];
  return (count.holds + overall_[clue]) / (count.known() + 1);
}

double Diagnosis::LogLikelihood(const Signature& signature,
                                const std::vector<ClueReadings>& readings) const {
  double sum = 0;
  for (const ClueReadings& run : readings) {
    for (std::size_t clue = 0; clue < run.size(); ++clue) {
      if (run[clue] == Truth::kUnknown) continue;
      const double rate = RateIn(signature, clue);
      sum += std::log(run[clue] == Truth::kTrue ? rate : 1 - rate);
    }
  }
  return sum;
}

// A row with several points is like the run as its points are on the average; every row counts the
// same beforehand, and all of them together as much as "healthy" alone.
std::vector<Likeness> Diagnosis::Rank(const std::vector<ClueReadings>& readings, const Reach& reach,
                                      const std::string& left_out, LeaveOut how) const {
  struct Row {
    std::vector<double> terms;
    std::string best;
    double largest = -kInfinity;
  };
  std::map<std::string, Row> rows;
  for (const Signature& signature : signatures_) {
    const bool is_left_out = signature.row.empty() || how == LeaveOut::kAll;
    if (is_left_out && signature.name == left_out) continue;
    if (!reach.Covers(signature.reach)) continue;
    Row& row = rows[signature.row];
    row.terms.push_back(LogLikelihood(signature, readings));
    if (row.terms.back() > row.largest) {
      row.largest = row.terms.back();
      row.best = signature.name;
    }
  }
  const auto healthy = rows.find("");
  const double base = healthy == rows.end() ? 0 : LogMeanExp(healthy->second.terms);
  const double prior = -std::log(std::max<double>(1, static_cast<double>(rows.size()) - 1));
  std::vector<Likeness> ranked;
  for (const auto& [name, row] : rows) {
    const double bits =
        name.empty() ? alarm_bits_ : (LogMeanExp(row.terms) + prior - base) / std::log(2.0);
    ranked.push_back({name, row.best, bits});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Likeness& a, const Likeness& b) { return a.bits > b.bits; });
  return ranked;
}

std::vector<ClueEvidence> Diagnosis::EvidenceFor(const Likeness& likeness,
                                                 const std::vector<ClueReadings>& readings,
                                                 std::size_t limit) const {
  std::vector<std::pair<double, ClueEvidence>> found;
  for (const Signature& signature : signatures_) {
    if (signature.row != likeness.row || signature.name != likeness.signature) continue;
    for (std::size_t clue = 0; clue < overall_.size(); ++clue) {
      int holds = 0, fails = 0;
      for (const ClueReadings& run : readings) {
        holds += run[clue] == Truth::kTrue;
        fails += run[clue] == Truth::kFalse;
      }
      if (holds == fails || signature.counts[clue].known() == 0) continue;
      const Count& count = signature.counts[clue];
      ClueEvidence evidence{static_cast<int>(clue), holds > fails,
                            static_cast<double>(count.holds) / count.known(), overall_[clue]};
      double rate = RateIn(signature, clue);
      if (!evidence.holds) {
        rate = 1 - rate;
        evidence.in_row = 1 - evidence.in_row;
        evidence.overall = 1 - evidence.overall;
      }
      const double gain = std::log2(rate / evidence.overall);
      if (gain > 0) found.emplace_back(gain, evidence);
    }
  }
  // What holds says more to people than what does not.
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.holds) > std::pair(b.first, b.second.holds);
  });
  std::vector<ClueEvidence> best;
  for (std::size_t i = 0; i < std::min(limit, found.size()); ++i) best.push_back(found[i].second);
  return best;
}

}  // namespace trainwreck
