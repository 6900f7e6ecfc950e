// The description that this package's tests check scenarios against, and small readers of files.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "harness/protocol/description.h"

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

}  // namespace trainwreck
