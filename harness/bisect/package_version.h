// The version of a release of a Python package, in the order of PEP 440.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trainwreck {

class PackageVersion {
 public:
  // Takes every spelling that PEP 440 allows: "v1.0-Beta.2" is 1.0b2. Empty: it is no version.
  static std::optional<PackageVersion> Parse(const std::string& text);

  // "1.0" and "1.0.0" are equal.
  std::strong_ordering operator<=>(const PackageVersion& other) const = default;
  bool operator==(const PackageVersion& other) const = default;
  // Also a development release.
  bool IsPreRelease() const;

 private:
  // In the order in which they are compared. A part that is missing has the number that gives it
  // its place: 1.0.dev1 < 1.0a1.dev1 < 1.0a1 < 1.0 < 1.0.post1.dev1 < 1.0.post1.
  int epoch_ = 0;
  std::vector<long> release_;  // without the zeros at its end
  int pre_kind_ = 0;           // a, b, rc
  long pre_ = 0;
  long post_ = 0;
  long dev_ = 0;
  // Words sort before numbers.
  std::vector<std::pair<long, std::string>> local_;
};

}  // namespace trainwreck
