#include "harness/cli/tests/cli_testing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace trainwreck {

namespace fs = std::filesystem;

CliFolder::CliFolder() {
  const char* tmp = std::getenv("TEST_TMPDIR");
  std::string name = std::string(tmp != nullptr ? tmp : "/tmp") + "/cli-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
  program_ = fs::absolute("harness/cli/trainwreck").string();
  target_ = fs::absolute("harness/launch/fake_target").string();
}

void CliFolder::Write(const std::string& path, const std::string& text) const {
  fs::path file = fs::path(path_) / path;
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::string CliFolder::Read(const std::string& path) const {
  std::ifstream file(fs::path(path_) / path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool CliFolder::Has(const std::string& path) const { return fs::exists(fs::path(path_) / path); }

Called CliFolder::Call(const std::string& arguments, const std::string& environment) const {
  return Shell("'" + program_ + "' " + arguments, environment);
}

Called CliFolder::Shell(const std::string& text, const std::string& environment) const {
  const std::string command = "cd '" + path_ + "' && { export TRAINWRECK_TARGET='" + target_ +
                              "' TRAINWRECK_CACHE='" + path_ + "/cache' " + environment +
                              "; unset GITHUB_STEP_SUMMARY; " + text +
                              "; } >.stdout 2>.stderr </dev/null";
  const int status = std::system(command.c_str());
  Called called;
  called.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  called.out = Read(".stdout");
  called.err = Read(".stderr");
  return called;
}

void CliFolder::WritePassing(const std::string& name, const std::string& extra,
                             const std::string& seeds) const {
  Write("scenarios/fake/" + name + ".yaml",
        "apiVersion: trainwreck/v1\n"
        "kind: Scenario\n"
        "name: fake/" +
            name +
            "\n"
            "title: A slow descent\n"
            "recipe: {steps: 20, optimizer.lr: 0.2}\n"
            "inject:\n"
            "  slow: {fault: fake.slow_descent, with: {factor: 0.01}}\n"
            "symptoms:\n"
            "  stuck: at_end loss > 1\n"
            "remedies:\n"
            "  faster: {scale: {optimizer.lr: 50}}\n"
            "decoys:\n"
            "  slightly_faster: {scale: {optimizer.lr: 1.5}}\n"
            "seeds: " +
            seeds + "\n" + extra);
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace trainwreck
