// The built program, called as a user calls it, in a folder of its own with a fake target: no
// LibTorch, no time.
//
//   CliFolder folder;
//   folder.Write("scenarios/fake/ok.yaml", kPasses);
//   Called called = folder.Call("run fake/ok");
//   EXPECT_EQ(called.status, 0) << called.output();
#pragma once

#include <string>

namespace trainwreck {

struct Called {
  int status = -1;
  std::string out;
  std::string err;
  std::string output() const { return out + err; }
};

class CliFolder {
 public:
  CliFolder();  // new and empty, below TEST_TMPDIR

  void Write(const std::string& path, const std::string& text) const;
  std::string Read(const std::string& path) const;
  bool Has(const std::string& path) const;

  // `arguments` goes through the shell; `environment` as "NAME=value NAME=value".
  Called Call(const std::string& arguments, const std::string& environment = "") const;

  // Any command, in this folder and with the fake target in the environment.
  Called Shell(const std::string& command, const std::string& environment = "") const;

  // scenarios/fake/NAME.yaml of a scenario that passes: the fault slows the descent of the loss.
  // `extra` is appended as it is.
  void WritePassing(const std::string& name, const std::string& extra = "",
                    const std::string& seeds = "2") const;

  const std::string& path() const { return path_; }
  const std::string& program() const { return program_; }
  const std::string& target() const { return target_; }

 private:
  std::string path_;
  std::string program_;
  std::string target_;
};

bool Contains(const std::string& text, const std::string& part);

}  // namespace trainwreck
