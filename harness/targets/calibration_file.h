// The strengths that `trainwreck calibrate` measured, in trainwreck.calibration.yaml beside
// trainwreck.yaml. People keep it under version control; the program writes it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/targets/target_spec.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {

struct MeasuredStrength {
  double strength = 0;
  std::pair<double, double> passed;  // the weakest and the strongest around it that passed
};

// Of one target.
struct MeasuredTarget {
  std::string command;                                // digest of its words
  std::map<std::string, std::string> recipe;          // the defaults, as texts
  std::map<std::string, MeasuredStrength> strengths;  // by scenario
};

struct CalibrationFile {
  std::map<std::string, MeasuredTarget> targets;
  std::vector<Diagnostic> errors;
};

std::string CalibrationPath(const TargetSpec& spec);

// A file that is not there has no targets.
CalibrationFile LoadCalibrationFile(const std::string& path);
std::string CalibrationText(const CalibrationFile& file);

// The target as it is now, without strengths.
MeasuredTarget AsMeasured(const TargetSpec& spec);

// What the file has for this target, with what has changed since.
Calibration CalibrationOf(const CalibrationFile& file, const TargetSpec& spec);

}  // namespace trainwreck
