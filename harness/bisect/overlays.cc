#include "harness/bisect/overlays.h"

#include <fcntl.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "harness/process/command.h"
#include "harness/process/interruption.h"
#include "harness/protocol/digest.h"
#include "harness/session/session.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// What a compiled module must have been built for, and the Python's own path: pip takes no name
// that is found on PATH.
constexpr char kAskKind[] =
    "import sys, sysconfig\n"
    "print('python', sys.executable)\n"
    "print('kind', sysconfig.get_config_var('SOABI') or sys.implementation.cache_tag)\n";

// Imports what the release's own list of files has at its top: the module of the package's name, or
// all where there is none.
constexpr char kImport[] = R"(
import importlib, importlib.metadata, os, re, sys
folder, package = os.path.realpath(sys.argv[1]), sys.argv[2]
found = next(iter(importlib.metadata.distributions(name=package, path=[folder])), None)
if found is None:
    sys.exit("it has another name than " + package)
names = set()
for file in found.files or []:
    parts = file.parts
    if len(parts) == 2 and parts[1] == "__init__.py":
        names.add(parts[0])
    elif len(parts) == 1 and parts[0].endswith((".py", ".so")):
        names.add(parts[0].split(".")[0])
own = re.sub(r"[-_.]+", "_", package).lower()
chosen = [name for name in names if name.lower() == own] or sorted(names)
for name in chosen:
    try:
        module = importlib.import_module(name)
    except BaseException as error:
        sys.exit(" ".join(f"{type(error).__name__}: {error}".split())[:300])
    place = os.path.realpath(module.__file__)
    if not place.startswith(folder + os.sep):
        sys.exit(f"{name} comes from {place}, which stands before PYTHONPATH")
)";

// The last line that says what is wrong; pip prints hints after it.
std::string ErrorIn(const std::string& text) {
  std::istringstream lines(text);
  std::string last, error;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    last = line;
    if (line.starts_with("ERROR: ")) error = line.substr(7);
  }
  return error.empty() ? last : error;
}

// What pip says of a try that does not reach an index, and of a full disk.
bool IsOfMachine(const std::string& text) {
  return text.find("Retrying (Retry(") != std::string::npos ||
         text.find("Could not install packages due to an OSError") != std::string::npos;
}

// Held by one process at a time.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path);
    AwaitLock(fd_);
  }
  ~FolderLock() { close(fd_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace

std::string NormalPackage(const std::string& name) {
  std::string normal = name;
  RE2::GlobalReplace(&normal, "[-_.]+", "-");
  std::transform(normal.begin(), normal.end(), normal.begin(), ::tolower);
  return normal;
}

Overlays::Overlays(std::string python, std::string log)
    : python_(std::move(python)), log_(std::move(log)) {
  const Answer asked = Call({python_, "-c", kAskKind}, "", {}, 0);
  static const RE2 kKind(R"((?m)^python (.+)\nkind (\S+)$)");
  std::string path;
  if (!asked.ok || !RE2::PartialMatch(ReadFile(log_).value_or(""), kKind, &path, &kind_)) {
    throw UsageError("'" + python_ + "' is no Python that can be run (" + asked.why +
                     "); name the target's with --python");
  }
  FindPip(path);
  // Another index may have another package under the same name and version.
  kind_ += "-" + DigestText(ReadFile(log_).value_or("")).substr(0, 8);
  cache_ = CacheFolder() + "/overlays";
  fs::create_directories(cache_);
}

// Leaves the user's configuration of pip in the log.
void Overlays::FindPip(const std::string& path) {
  std::string why;
  for (const std::vector<std::string>& pip : {std::vector<std::string>{python_, "-m", "pip"},
                                              {"python3", "-m", "pip", "--python", path}}) {
    pip_ = pip;
    const Answer answer = Pip({"config", "list"});
    if (answer.ok) return;
    if (why.empty()) why = answer.why;
  }
  throw UsageError("there is no pip for " + python_ + ": " + why +
                   "; install it there, or beside python3");
}

Overlays::Answer Overlays::Call(std::vector<std::string> command, const std::string& folder,
                                std::map<std::string, std::string> environment,
                                double limit_seconds) const {
  fs::remove(log_);
  const CommandResult called = RunCommand(command, {.folder = folder,
                                                    .log = log_,
                                                    .environment = std::move(environment),
                                                    .limit_seconds = limit_seconds});
  Answer answer;
  answer.seconds = called.seconds;
  answer.ok = called.status == 0 && !called.timed_out;
  if (answer.ok) return answer;
  const std::string text = ReadFile(log_).value_or("");
  answer.is_machine = IsOfMachine(text);
  answer.why = called.timed_out ? "it takes longer than --build-limit" : ErrorIn(text);
  if (answer.why.empty()) answer.why = "status " + std::to_string(called.status);
  return answer;
}

Overlays::Answer Overlays::Pip(const std::vector<std::string>& arguments,
                               double limit_seconds) const {
  std::vector<std::string> command = pip_;
  command.insert(command.end(), arguments.begin(), arguments.end());
  // `user` of a configuration file does not go with --target.
  return Call(command, "",
              {{"PIP_USER", "0"},
               {"PIP_NO_INPUT", "1"},
               {"PIP_DISABLE_PIP_VERSION_CHECK", "1"},
               {"PIP_NO_COLOR", "1"}},
              limit_seconds);
}

Overlays::Answer Overlays::List(const std::string& package,
                                std::vector<std::string>& versions) const {
  Answer answer = Pip({"index", "versions", "--pre", package});
  const std::string text = ReadFile(log_).value_or("");
  static const RE2 kListed(R"((?m)^Available versions: (.*)$)");
  std::string listed;
  if (answer.ok && !RE2::PartialMatch(text, kListed, &listed)) {
    answer.ok = false;
    answer.why = "it lists no versions";
  }
  RE2::GlobalReplace(&listed, ",", " ");
  std::istringstream words(listed);
  for (std::string word; words >> word;) versions.push_back(word);
  return answer;
}

std::string Overlays::FolderOf(const Release& release) const {
  return cache_ + "/" + NormalPackage(release.package) + "-" + release.version + "-" + kind_;
}

bool Overlays::Has(const Release& release) const { return fs::exists(FolderOf(release)); }

Overlays::Answer Overlays::Install(const Release& release, double limit_seconds) const {
  const FolderLock lock(cache_ + "/lock");
  Answer answer;
  answer.ok = true;
  if (Has(release)) return answer;
  const std::string folder = FolderOf(release), unfinished = folder + ".new";
  fs::remove_all(unfinished);
  answer = Pip({"install", "--no-deps", "--no-compile", "--target", unfinished, release.Text()},
               limit_seconds);
  // The name appears last: an installation that was cut off is none.
  if (answer.ok) {
    fs::rename(unfinished, folder);
  } else {
    fs::remove_all(unfinished);
  }
  return answer;
}

Overlays::Answer Overlays::Import(const Release& release, const std::string& folder,
                                  const std::map<std::string, std::string>& environment,
                                  double limit_seconds) const {
  return Call({python_, "-c", kImport, FolderOf(release), release.package}, folder, environment,
              limit_seconds);
}

}  // namespace trainwreck
