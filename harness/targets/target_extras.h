// Keys of a target that say how long it may take, what else is part of it, and how low a signal can
// go. docs/guide/targets.md describes them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/yaml/fields.h"

namespace trainwreck {

struct TargetExtras {
  std::optional<double> start_seconds;           // up to the first step
  std::optional<double> seconds;                 // of work
  std::optional<double> stall_seconds;           // without progress
  std::vector<std::string> digest;               // globs of files that belong to the program
  std::vector<std::string> packages;             // of Python, whose versions are recorded
  std::vector<std::string> fingerprint_command;  // what it prints is recorded
  std::map<std::string, double> floors;          // signal -> below it something is wrong
};

// A target of level 0 or 1 that does not say how long it starts: imports take their time.
inline constexpr double kForeignStartSeconds = 120;

void ReadTargetExtras(Fields& fields, Errors& errors, TargetExtras& extras);
// Of one entry of `signals`.
void ReadFloor(Fields& fields, const std::string& signal, Errors& errors, TargetExtras& extras);

// `newest:GLOB` among placeholders; `what` is the place where it stands. False: it is another one.
bool CheckNewest(const std::string& placeholder, const std::string& what, const YamlNode& node,
                 Errors& errors);

// How a floor stands among a target's features: "floor:loss=0.5".
std::string FloorFeature(const std::string& signal, double floor);

}  // namespace trainwreck
