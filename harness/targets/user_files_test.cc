#include "harness/targets/user_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/targets/globs.h"

namespace trainwreck {
namespace user_files_test {

namespace fs = std::filesystem;

class UserFilesTest : public testing::Test {
 protected:
  UserFilesTest() {
    std::string name = std::string(std::getenv("TEST_TMPDIR")) + "/files.XXXXXX";
    folder_ = mkdtemp(name.data());
  }

  void Write(const std::string& name, const std::string& text = "") {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name) << text;
  }

  TargetSpec Load(const std::string& command, const std::string& more = "") {
    Write("trainwreck.yaml",
          "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  t:\n    command: " + command +
              "\n    recipe: {steps: 3}\n    signals: {loss: {}}\n"
              "    sources: [{stdout: '(?P<loss>.)'}]\n" +
              more);
    TargetFile file = LoadTargetFile(folder_ + "/trainwreck.yaml");
    for (const Diagnostic& error : file.errors) ADD_FAILURE() << Format(error);
    return file.targets.empty() ? TargetSpec() : file.targets.front();
  }

  std::string Names(const TargetSpec& spec) {
    std::string names;
    for (const std::string& path : FilesOfTarget(spec)) {
      names += (names.empty() ? "" : " ") + fs::relative(path, folder_).string();
    }
    return names;
  }

  std::string folder_;
};

TEST_F(UserFilesTest, AScriptCountsWithWhatItImports) {
  Write("train.py", "import os, model\nfrom util.io import read\nimport numpy as np\n");
  Write("model.py", "from layers import Block as B\n");
  Write("layers.py");
  Write("util/__init__.py");
  Write("util/io.py", "from . import paths\n");
  Write("util/paths.py");
  Write("unused.py");
  Write("small.yaml");
  EXPECT_EQ(Names(Load("[python3, train.py, --config=small.yaml, '--steps={steps}']")),
            "layers.py model.py small.yaml train.py util/__init__.py util/io.py util/paths.py");
}

TEST_F(UserFilesTest, AModuleCountsAsItsWholePackage) {
  Write("pkg/__init__.py");
  Write("pkg/train.py");
  Write("pkg/deep/net.py");
  Write("pkg/__pycache__/x.py");
  Write("other.py");
  EXPECT_EQ(Names(Load("[python3, -m, pkg.train]")),
            "pkg/__init__.py pkg/deep/net.py pkg/train.py");
}

TEST_F(UserFilesTest, GlobsNameTheRest) {
  Write("train.py");
  Write("configs/a.yaml");
  Write("configs/deep/b.yaml");
  Write(".venv/configs/c.yaml");
  EXPECT_EQ(Names(Load("[python3, train.py]", "    digest: ['configs/*.yaml']\n")),
            "configs/a.yaml configs/deep/b.yaml train.py");
}

TEST_F(UserFilesTest, AFingerprintHoldsTheVersionsOfInterpreterAndPackages) {
  Write("train.py");
  const auto plain = TakeFingerprint(Load("[python3, train.py]"));
  ASSERT_EQ(plain.size(), 1u);
  EXPECT_EQ(plain.at("python").find("3."), 0u) << plain.at("python");
  const auto more = TakeFingerprint(
      Load("[python3, train.py]",
           "    fingerprint: {packages: [no-such-package], command: [echo, nvcc 12]}\n"));
  EXPECT_EQ(more.at("no-such-package"), "missing");
  EXPECT_EQ(more.at("fingerprint"), "nvcc 12");
  const auto broken =
      TakeFingerprint(Load("[./program]", "    fingerprint: {command: [no-such-program]}\n"));
  EXPECT_EQ(broken.at("fingerprint"), "failed with code 127");
}

TEST_F(UserFilesTest, TheNewestMatchIsTheOneThatWasChangedLast) {
  for (const char* name : {"a[1]/checkpoint-9/x", "a[1]/checkpoint-10/x", "a[1]/other/x"})
    Write(name);
  const auto now = fs::last_write_time(folder_ + "/a[1]/other");
  for (const char* name : {"checkpoint-9", "checkpoint-10"}) {
    fs::last_write_time(folder_ + "/a[1]/" + name, now);
  }
  const std::string folder = folder_ + "/a[1]";
  EXPECT_EQ(FindNewest({folder}, "checkpoint-*"), folder + "/checkpoint-10");  // of equals
  fs::last_write_time(folder + "/checkpoint-9", now + std::chrono::seconds(5));
  EXPECT_EQ(FindNewest({folder}, "checkpoint-*"), folder + "/checkpoint-9");
  EXPECT_EQ(FindNewest({folder}, "step-*"), std::nullopt);
}

}  // namespace user_files_test
}  // namespace trainwreck
