// trainwreck export: signals and events of stored runs, for other programs.
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "harness/cli/verb.h"
#include "harness/export/csv.h"
#include "harness/export/json_lines.h"
#include "harness/export/stored_runs.h"
#include "harness/process/interruption.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/targets/python_hooks.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  CommonOptions common;
  std::string run;
  std::string to = "csv";
  std::string output;
  std::string python = "python3";
  std::vector<std::string> signals;
};

// The file by its path: nothing in a folder of ours or of the user hides what the clients import.
constexpr const char* kRunFile =
    "import runpy, sys; del sys.path[0]; del sys.argv[0]; "
    "runpy.run_path(sys.argv[0], run_name='__main__')";

// A Python that reads our lines.
class Client {
 public:
  explicit Client(const ExportOptions& options) : python_(options.python) {
    const std::string hooks = FindPythonHooks();
    if (hooks.empty()) {
      throw ConfigurationError("the Python package of trainwreck is not beside this program");
    }
    const std::string file = (fs::path(hooks).parent_path() / "export.py").string();
    const std::string command =
        Join(std::vector<std::string>{"exec", ShellWord(python_), "-c", ShellWord(kRunFile),
                                      ShellWord(file), options.to, ShellWord(options.output)},
             " ");
    pipe_ = popen(command.c_str(), "we");
    if (pipe_ == nullptr) throw ConfigurationError("cannot start '" + python_ + "'");
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (pipe_ != nullptr) pclose(pipe_);
  }

  // A client that has ended has said why.
  void Write(const std::string& lines) {
    has_failed_ = has_failed_ || std::fwrite(lines.data(), 1, lines.size(), pipe_) < lines.size();
  }
  bool has_failed() const { return has_failed_; }

  int Finish() {
    const int status = pclose(std::exchange(pipe_, nullptr));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
      throw ConfigurationError("'" + python_ + "' cannot be started: name another with --python");
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(kExitInfrastructure);
  }

 private:
  std::string python_;
  std::FILE* pipe_ = nullptr;
  bool has_failed_ = false;
};

int ExportCsv(const StoredRuns& runs, const std::string& folder) {
  CsvExport csv(folder);
  const int count = runs.Visit([&](const ExportedRun& run) { csv.Add(run); });
  if (WasInterrupted()) return kExitInterrupted;
  csv.Finish();
  std::cout << "wrote " << count << (count == 1 ? " run" : " runs") << " to " << folder << "\n";
  return kExitPassed;
}

int ExportLines(const StoredRuns& runs, const std::string& path) {
  std::unique_ptr<std::ofstream> file;
  if (path != "-") file = std::make_unique<std::ofstream>(path, std::ios::binary);
  std::ostream& out = file ? *file : std::cout;
  JsonLinesExport lines([&](const std::string& text) { out << text; });
  runs.Visit([&](const ExportedRun& run) { lines.Add(run); });
  if (WasInterrupted()) return kExitInterrupted;
  lines.Finish();
  if (!out.flush()) throw std::system_error(errno, std::generic_category(), "cannot write " + path);
  return kExitPassed;
}

int ExportByClient(const StoredRuns& runs, const ExportOptions& options) {
  Client client(options);
  JsonLinesExport lines([&](const std::string& text) { client.Write(text); });
  runs.Visit([&](const ExportedRun& run) {
    if (!client.has_failed()) lines.Add(run);
  });
  if (WasInterrupted()) return kExitInterrupted;
  lines.Finish();
  return client.Finish();
}

int Export(const ExportOptions& options) {
  const StoredRuns runs(FindOutputFolder(options.run), options.signals);
  if (options.to == "csv") return ExportCsv(runs, options.output);
  if (options.to == "json") return ExportLines(runs, options.output);
  return ExportByClient(runs, options);
}

void Declare(VerbArguments& arguments, ExportOptions& options) {
  arguments.Positional("RUN", options.run, "Folder of the invocation or of a part of it, or latest")
      .Required();
  arguments
      .Option("--to", options.to,
              "csv, json, parquet, tensorboard, mlflow or wandb [csv]; the last four need the "
              "Python package of that name",
              "FORMAT")
      .OneOf({"csv", "json", "mlflow", "parquet", "tensorboard", "wandb"});
  arguments
      .Option("--output", options.output,
              "Folder to write to; of json a file or -, of mlflow also the URI of a server", "DIR")
      .Required();
  arguments.Option("--signal", options.signals,
                   "Only signals of this name, or glob of names; may be repeated", "GLOB");
  arguments.Option("--python", options.python, "The Python that has the package [python3]",
                   "PROGRAM");
  arguments.Common(options.common);
}

const VerbRegistration registration("export", "Write signals of stored runs for other programs",
                                    kStored, Declare, Export);

}  // namespace
}  // namespace trainwreck
