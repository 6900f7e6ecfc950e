// The fixture of the tests of outside_faults.h: a folder of checkpoints, and what has fired.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/process/rank_processes.h"
#include "harness/targets/outside_faults.h"

namespace trainwreck {
namespace outside_faults_test {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

inline constexpr char kBytes[] = "abcdefgh";

class OutsideFaultsTest : public testing::Test {
 protected:
  OutsideFaultsTest() {
    const char* tmp = std::getenv("TEST_TMPDIR");
    std::string name = std::string(tmp != nullptr ? tmp : "/tmp") + "/faults-XXXXXX";
    folder_ = mkdtemp(name.data());
    plan_.checkpoint_dir = folder_;
    fs::create_directory(folder_ + "/deep");
    Write("deep/model.bin", kBytes);
    Write("notes.txt", kBytes);
    setenv(kRunVariable, folder_.c_str(), 1);  // as the harness does
  }

  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  std::string Read(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    if (!file) return "gone";
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  PlannedFault& Add(const std::string& fault, std::map<std::string, Json> with) {
    plan_.faults.push_back({.id = "it", .fault = fault, .with = std::move(with), .trigger = {}});
    return plan_.faults.back();
  }
  OutsideFaults Make(int rank = 0, int ranks = 1, LauncherKind launcher = LauncherKind::kOwn) {
    return OutsideFaults(plan_, rank, ranks, launcher, guards_, folder_,
                         [this](Json fields) { fired_.push_back(std::move(fields)); });
  }

  std::string folder_;
  RankGuards guards_{"/nowhere", 2};
  Plan plan_;
  std::vector<Json> fired_;
};

}  // namespace outside_faults_test
}  // namespace trainwreck
