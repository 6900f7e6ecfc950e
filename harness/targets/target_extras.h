// Keys of a target for limits of its runs, further files of the program, and the lowest values of
// signals. docs/guide/targets.md describes them.
#pragma once

#include <cstdint>
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
  std::optional<std::int64_t> disk_bytes;        // that a run may write
  std::vector<std::string> digest;               // globs of files that belong to the program
  std::vector<std::string> packages;             // of Python, whose versions are recorded
  std::vector<std::string> fingerprint_command;  // its output is recorded
  std::map<std::string, double> floors;          // signal -> values below it are errors
};

// The time for the start of a target of level 0 or 1 that does not give one: imports are slow.
inline constexpr double kForeignStartSeconds = 120;

void ReadTargetExtras(Fields& fields, Errors& errors, TargetExtras& extras);
// Reads `floor` of one entry of `signals`.
void ReadFloor(Fields& fields, const std::string& signal, Errors& errors, TargetExtras& extras);

// Checks a placeholder of the form `newest:GLOB`; `what` is the place where it stands. False: it
// has another form.
bool CheckNewest(const std::string& placeholder, const std::string& what, const YamlNode& node,
                 Errors& errors);

// A floor as a feature of a target: "floor:loss=0.5".
std::string FloorFeature(const std::string& signal, double floor);

}  // namespace trainwreck
