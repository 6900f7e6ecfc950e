#include "harness/picture/curves_of_case.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "harness/judge/arm_judge.h"
#include "harness/picture/curve.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

using Key = std::pair<std::string, int>;  // signal and rank, as in RunTrace::series

constexpr int kPoints[] = {240, 160, 100, 60, 40, 24, 12};
constexpr int kPointsOfOthers = 60;
constexpr std::size_t kMostNamesLeftOut = 60;
constexpr std::size_t kLeastBytes = 20;  // of a curve

std::string BaseOf(const std::string& signal) { return signal.substr(0, signal.find('{')); }

std::string NameOf(const Key& key) {
  return CleanText(key.first) + (key.second == 0 ? "" : "@" + std::to_string(key.second));
}

std::set<std::string> SignalsRead(const Case& plan) {
  std::set<std::string> names = {"loss"};
  for (const ArmPlan& arm : plan.arms) {
    for (const Claim& claim : ClaimsOf(plan, arm)) {
      for (const std::string& signal : claim.check->formula.signals()) names.insert(BaseOf(signal));
    }
  }
  return names;
}

// The smaller, the sooner a signal is chosen.
class Order {
 public:
  Order(const Case& plan, const TargetDescription& target) : read_(SignalsRead(plan)) {
    for (const SignalInfo& signal : target.signals) {
      described_.emplace(signal.name, described_.size());
    }
  }
  bool IsFirst(const Key& key) const {
    return key.second == 0 && read_.contains(BaseOf(key.first));
  }
  auto operator()(const Key& key) const {
    const std::string base = BaseOf(key.first);
    const auto place = described_.find(base);
    const bool is_read = read_.contains(base);
    return std::tuple(!is_read, key.second, base != "loss", base != key.first,
                      place == described_.end() ? described_.size() : place->second, key.first);
  }

 private:
  std::set<std::string> read_;
  std::map<std::string, std::size_t> described_;
};

struct Candidate {
  Key key;
  std::vector<std::tuple<std::string, int, const Series*>> series;  // arm, seed
};

// A digest is a number that only equality says something of.
bool IsDrawn(const std::string& signal) {
  const std::string base = BaseOf(signal);
  return !base.ends_with("_digest") && base != "time";
}

std::vector<Candidate> CandidatesOf(const CaseResults& results, const Order& order) {
  std::map<Key, Candidate> by_key;
  for (const auto& [arm, by_seed] : results.runs) {
    for (const auto& [seed, run] : by_seed) {
      for (const auto& [key, series] : run.trace.series) {
        if (series.values.empty() || !IsDrawn(key.first)) continue;
        by_key[key].key = key;
        by_key[key].series.emplace_back(arm, seed, &series);
      }
    }
  }
  std::vector<Candidate> all;
  for (auto& [key, candidate] : by_key) all.push_back(std::move(candidate));
  std::sort(all.begin(), all.end(),
            [&](const Candidate& a, const Candidate& b) { return order(a.key) < order(b.key); });
  return all;
}

std::size_t BytesOf(const Candidate& candidate, int points) {
  std::size_t bytes = 0;
  for (const auto& [arm, seed, series] : candidate.series) {
    bytes += BytesOf(Thinned(*series, points)) + candidate.key.first.size() + 4;
  }
  return bytes;
}

}  // namespace

CurvesOfCase ChooseCurves(const CaseResults& results, const TargetDescription& target,
                          std::size_t bytes) {
  const Order order(*results.plan, target);
  const std::vector<Candidate> candidates = CandidatesOf(results, order);
  int points = 0;
  for (int tried : kPoints) {  // the most with which all that formulas read fits
    points = tried;
    std::size_t needed = 0;
    for (const Candidate& candidate : candidates) {
      if (order.IsFirst(candidate.key)) needed += BytesOf(candidate, points);
    }
    if (needed <= bytes) break;
  }
  CurvesOfCase chosen;
  std::size_t used = 0;
  for (const Candidate& candidate : candidates) {
    const int own = order.IsFirst(candidate.key) ? points : std::min(points, kPointsOfOthers);
    const bool is_loss = candidate.key == Key("loss", 0);
    // Thousands of signals may be left when the room is full: they are not looked at.
    const bool is_full = used + kLeastBytes * candidate.series.size() > bytes;
    const std::size_t needed = is_full && !is_loss ? bytes + 1 : BytesOf(candidate, own);
    if (!is_loss && used + needed > bytes) {
      if (chosen.left_out.size() < kMostNamesLeftOut) {
        chosen.left_out.push_back(NameOf(candidate.key));
      }
      continue;
    }
    used += needed;
    for (const auto& [arm, seed, series] : candidate.series) {
      chosen.curves[{arm, seed}][NameOf(candidate.key)] = ToJson(Thinned(*series, own));
    }
  }
  return chosen;
}

}  // namespace trainwreck
