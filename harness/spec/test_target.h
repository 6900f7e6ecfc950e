// The description that this package's tests check scenarios against, and small readers of files
// and errors.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "harness/protocol/description.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

inline std::string ReadTestFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

inline TargetDescription TestTarget() {
  TargetDescription target =
      DescriptionFromJson(Json::parse(ReadTestFile("tests/bad_scenarios/target.json")));
  AddHarnessVocabulary(target);
  return target;
}

// The errors of a scenario, one line each: "5:9: the message (the likely fix)".
inline std::string Messages(const ScenarioFile& file) {
  std::string messages;
  for (const Diagnostic& error : file.errors) {
    messages += std::to_string(error.position.line) + ":" + std::to_string(error.position.column) +
                ": " + error.message + (error.hint.empty() ? "" : " (" + error.hint + ")") + "\n";
  }
  return messages;
}

}  // namespace trainwreck
