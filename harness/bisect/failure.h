// What a run of a bisection failed in, and which failures count as the same one.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

std::string BisectNumber(double value);  // three digits

// By how much a claim was missed: a margin without its sign.
struct FailureSize {
  double amount = 0;  // above 0
  std::string unit;   // as files have it: "octaves", "steps", "s", "plain"
  std::string Text() const;
};

// One claim of a scenario that did not hold.
struct Failure {
  std::string failure_class;  // the text of a FailureClass, or "test" of a command that failed
  std::string check;
  std::string arm;
  std::optional<FailureSize> size = {};  // where the claim has a margin

  // The same claim, failed in the same way, by whatever size.
  bool operator==(const Failure& other) const { return Kind() == other.Kind(); }
  bool operator<(const Failure& other) const { return Kind() < other.Kind(); }
  std::string Text() const;  // "symptom_absent ('blows_up' in fault)"

 private:
  std::tuple<const std::string&, const std::string&, const std::string&> Kind() const {
    return {failure_class, check, arm};
  }
};

Json ToJson(const std::vector<Failure>& failures);
std::vector<Failure> FailuresFromJson(const Json& json);

// The sizes of one failure in the runs of the bad end. If they are alike, a failure of another size
// has another reason. If they are not, or there is only one, sizes tell nothing.
class FailureSizes {
 public:
  // Whether this changes what is alike.
  bool Add(const std::optional<FailureSize>& size);
  bool Excludes(const std::optional<FailureSize>& size) const;
  // Whether one more failure of the bad end would decide about this size.
  bool LeavesOpen(const std::optional<FailureSize>& size) const;
  std::string Text() const;  // "5.9 to 6.1 octaves"

 private:
  // Octaves are logarithms: there a difference is what a quotient is elsewhere.
  double Position(double amount) const;
  bool AreAlike() const;
  bool IsFar(const std::optional<FailureSize>& size) const;

  std::string unit_;
  int count_ = 0;
  double least_ = 0, most_ = 0;
};

}  // namespace trainwreck
