// The search for the strength of a scenario's fault with one target: the weakest at which the whole
// scenario passes, with an octave of room on either side. It only chooses the number; what must
// hold is the scenario's, and other seeds judge it later.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/session/session.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

// Calibration uses seeds from here on, so that a run of the scenario, which counts from 0, has
// never been seen.
inline constexpr int kFirstCalibrationSeed = 1000;

enum class StrengthAnswer { kTooWeak, kPasses, kFails, kNoControl, kInterrupted };

// kFault: control and the fault alone, with one seed. kAll: the whole scenario.
enum class StrengthLook { kFault, kAll };

// What the scenario says at one strength.
struct StrengthTrial {
  double strength = 0;
  StrengthLook look = StrengthLook::kAll;
  StrengthAnswer answer = StrengthAnswer::kFails;
  std::string why;  // of an answer that is no pass
};

struct StrengthSearch {
  std::optional<double> found;
  std::pair<double, double> passed;  // the octaves around it
  std::vector<StrengthTrial> trials;

  const StrengthTrial& last() const { return trials.back(); }
};

// From the weakest to the strongest that the scenario allows, each twice the one before, or half.
std::vector<double> OctavesOf(const Strength& strength);

// Looks for the first octave at which the fault shows, by halving, and from there on for three in a
// row at which the whole scenario passes. The one in the middle is found.
StrengthSearch FindStrength(const std::vector<double>& octaves,
                            const std::function<StrengthTrial(double, StrengthLook)>& look);

// Runs the scenario of this file at a strength; `seeds` are for the whole scenario. Throws
// ConfigurationError when runs could not be made.
StrengthTrial TryStrength(const Session& session, const std::string& file, double strength,
                          StrengthLook how, int seeds, int cores);

}  // namespace trainwreck
