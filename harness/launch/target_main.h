// The main program of a target for tests: it describes itself, serves forks, or trains one rank.
//
//   int main(int argc, char** argv) {
//     return trainwreck::TargetMain(argc, argv, trainwreck::Description,
//                                   [](trainwreck::Plan plan) { return Rank(plan).Run(); });
//   }
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "harness/process/spawn.h"
#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"

namespace trainwreck {

// The environment's variable; `fallback` where it is not set.
inline std::string Variable(const char* name, const std::string& fallback = "") {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

// `train` takes the plan and returns the rank's exit code.
template <typename Train>
int TargetMain(int argc, char** argv, TargetDescription (*describe)(), Train train) {
  const auto train_planned = [&] {
    std::ifstream file(Variable("TRAINWRECK_PLAN"));
    return train(PlanFromJson(Json::parse(file)));
  };
  try {
    const std::string verb = argc > 1 ? argv[1] : "";
    if (verb == "--describe") {
      std::cout << ToJson(describe()).dump(1) << "\n";
      return 0;
    }
    if (verb == "--fork-server") {
      return ServeSpawns(std::stoi(Variable(kSpawnFdVariable)),
                         [&](const SpawnRequest&) { return train_planned(); });
    }
    return train_planned();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", describe().name.c_str(), error.what());
    return 1;
  }
}

}  // namespace trainwreck
