#include "harness/bisect/failure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness/formula/formula.h"

namespace trainwreck {
namespace {

// Sizes within so many octaves, a factor of 8, are alike.
constexpr double kAlikeOctaves = 3;

// " octaves"; nothing for a plain number.
std::string UnitText(const std::string& unit) {
  const auto known = formula::FindUnit(unit);
  const std::string text = known ? formula::ToString(*known) : unit;
  return text.empty() ? "" : " " + text;
}

}  // namespace

std::string BisectNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::string FailureSize::Text() const { return BisectNumber(amount) + UnitText(unit); }

std::string Failure::Text() const {
  if (check.empty()) return failure_class;
  return failure_class + " ('" + check + "' in " + arm + ")";
}

Json ToJson(const std::vector<Failure>& failures) {
  Json json = Json::array();
  for (const Failure& failure : failures) {
    Json one = {failure.failure_class, failure.check, failure.arm};
    if (failure.size) {
      one.push_back(EncodeNumber(failure.size->amount));
      one.push_back(failure.size->unit);
    }
    json.push_back(std::move(one));
  }
  return json;
}

std::vector<Failure> FailuresFromJson(const Json& json) {
  std::vector<Failure> failures;
  for (const Json& each : json) {
    Failure failure = {each.at(0), each.at(1), each.at(2)};
    if (each.size() > 4) failure.size = FailureSize{DecodeNumber(each[3]).value_or(0), each[4]};
    failures.push_back(std::move(failure));
  }
  return failures;
}

double FailureSizes::Position(double amount) const {
  const auto octaves = formula::NameOf(formula::Unit::kOctave);
  return unit_ == octaves ? amount : std::log2(amount);
}

bool FailureSizes::AreAlike() const {
  if (count_ < 2) return false;
  // Two infinite ones have no difference.
  return least_ == most_ || Position(most_) - Position(least_) <= kAlikeOctaves;
}

bool FailureSizes::Add(const std::optional<FailureSize>& size) {
  if (!size || (count_ > 0 && size->unit != unit_)) return false;
  const FailureSizes before = *this;
  unit_ = size->unit;
  least_ = count_ == 0 ? size->amount : std::min(least_, size->amount);
  most_ = std::max(most_, size->amount);
  ++count_;
  return AreAlike() != before.AreAlike() || least_ != before.least_ || most_ != before.most_;
}

bool FailureSizes::Excludes(const std::optional<FailureSize>& size) const {
  return AreAlike() && IsFar(size);
}

bool FailureSizes::LeavesOpen(const std::optional<FailureSize>& size) const {
  return count_ == 1 && IsFar(size);
}

bool FailureSizes::IsFar(const std::optional<FailureSize>& size) const {
  if (!size || size->unit != unit_) return false;
  if (size->amount >= least_ && size->amount <= most_) return false;
  const double position = Position(size->amount);
  return position < Position(least_) - kAlikeOctaves || position > Position(most_) + kAlikeOctaves;
}

std::string FailureSizes::Text() const {
  return BisectNumber(least_) == BisectNumber(most_)
             ? BisectNumber(least_) + UnitText(unit_)
             : BisectNumber(least_) + " to " + BisectNumber(most_) + UnitText(unit_);
}

}  // namespace trainwreck
