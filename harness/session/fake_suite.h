// A suite of scenarios of the fake target in a fresh folder, for tests of rooms that run trainings.
// Its loss is 4 exp(-lr * step).
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "harness/launch/fake_runs.h"
#include "harness/session/session.h"

namespace trainwreck::testing {

class FakeSuite {
 public:
  FakeSuite() : folder_(FreshFolder("suite")) {
    common_.target = FakeTargetPath();
    common_.scenarios_root = folder_ + "/scenarios";
    setenv("TRAINWRECK_CACHE", (folder_ + "/cache").c_str(), 1);
  }

  const std::string& folder() const { return folder_; }
  const CommonOptions& common() const { return common_; }
  Session Open() const { return OpenSession(common_); }

  // scenarios/fake/NAME.yaml: `body` after the lines that all scenarios have.
  void Write(const std::string& name, const std::string& body) const {
    const std::filesystem::path path = folder_ + "/scenarios/fake/" + name + ".yaml";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "apiVersion: trainwreck/v1\nkind: Scenario\nname: fake/" << name
                        << "\ntitle: Of the fake target\n"
                        << body;
  }

  // A descent that the fault slows by `factor`; all of its claims hold.
  void WriteSlow(const std::string& name, double lr = 0.2, double factor = 0.01,
                 const std::string& more = "") const {
    Write(name, "recipe: {steps: 20, optimizer.lr: " + std::to_string(lr) +
                    "}\n"
                    "inject:\n"
                    "  slow: {fault: fake.slow_descent, with: {factor: " +
                    std::to_string(factor) +
                    "}}\n"
                    "symptoms:\n"
                    "  stuck: at_end loss > 1\n"
                    "remedies:\n"
                    "  faster: {scale: {optimizer.lr: 50}}\n"
                    "decoys:\n"
                    "  slightly_faster: {scale: {optimizer.lr: 1.5}}\n"
                    "seeds: 2\n" +
                    more);
  }

 private:
  std::string folder_;
  CommonOptions common_;
};

}  // namespace trainwreck::testing
