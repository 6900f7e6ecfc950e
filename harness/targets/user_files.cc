#include "harness/targets/user_files.h"

#include <re2/re2.h>
#include <stdio.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "harness/protocol/plan.h"
#include "harness/text/glob.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kSourceBytes = 4 << 20;  // of one that is searched for imports
constexpr std::size_t kMostFiles = 10'000;
constexpr std::size_t kMostOutput = 2000;
constexpr char kAskPython[] =
    "import importlib.metadata as m, platform, sys\n"
    "print('python', platform.python_version())\n"
    "for name in sys.argv[1:]:\n"
    "    try: print(name, m.version(name))\n"
    "    except m.PackageNotFoundError: print(name, 'missing')\n";

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Folders that hold no program of the user's own.
bool IsPassedOver(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with(".") || name == "__pycache__" || name == "node_modules";
}

// The words of the command that are the same in each run; a word with placeholders stands as an
// empty one.
std::vector<std::string> PlainWordsOf(const TargetSpec& spec) {
  std::vector<std::string> words;
  for (const Arguments& group : spec.command) {
    for (const TemplateText& word : group.words) {
      const auto& parts = word.parts();
      const bool is_plain = std::none_of(parts.begin(), parts.end(),
                                         [](const auto& part) { return part.is_placeholder; });
      words.push_back(is_plain ? word.Expand({}) : "");
    }
  }
  return words;
}

class Files {
 public:
  explicit Files(const TargetSpec& spec) : spec_(spec) {}

  std::vector<std::string> Find() {
    const std::vector<std::string> words = PlainWordsOf(spec_);
    for (std::size_t i = 0; i < words.size(); ++i) {
      AddWord(words[i], i == 0);
      if (words[i] == "-m" && i + 1 < words.size()) AddModule(words[i + 1]);
    }
    for (const std::string& glob : spec_.extras.digest) AddGlob(glob);
    return {found_.begin(), found_.end()};
  }

 private:
  // `train.py`, `--config=small.yaml`. The program itself only when it is named by a path: an
  // interpreter is known by its version.
  void AddWord(const std::string& word, bool is_program) {
    if (word.empty() || (is_program && word.find('/') == std::string::npos)) return;
    Add(fs::path(spec_.folder) / word);
    const std::size_t value = word.find('=');
    if (value != std::string::npos && value + 1 < word.size()) {
      Add(fs::path(spec_.folder) / word.substr(value + 1));
    }
  }

  void AddModule(const std::string& name) {
    const std::string top = name.substr(0, name.find('.'));
    for (const fs::path& root : {fs::path(spec_.folder), fs::path(spec_.folder) / "src"}) {
      Add(root / (top + ".py"));
      AddBelow(root / top, "*.py");
    }
  }

  // Patterns of paths below the target's folder; `*` matches slashes, too.
  void AddGlob(const std::string& glob) { AddBelow(spec_.folder, glob); }

  void AddBelow(const fs::path& folder, const std::string& glob) {
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, error), end;
    for (; !error && entry != end && found_.size() < kMostFiles; entry.increment(error)) {
      std::error_code ignored;
      if (entry->is_directory(ignored)) {
        if (IsPassedOver(entry->path())) entry.disable_recursion_pending();
        continue;
      }
      const std::string name = entry->path().lexically_relative(folder).string();
      if (GlobMatches(glob, name)) Add(entry->path());
    }
  }

  void Add(const fs::path& path) {
    const fs::path normal = path.lexically_normal();
    if (found_.size() >= kMostFiles || !IsFile(normal)) return;
    if (!found_.insert(normal.string()).second) return;
    if (normal.extension() == ".py") AddImports(normal);
  }

  // What lies beside the file or in the target's folder; anything else is a package, which has a
  // version.
  void AddImports(const fs::path& path) {
    std::error_code error;
    if (fs::file_size(path, error) > kSourceBytes || error) return;
    std::ifstream file(path);
    static const RE2 kImport(R"(^\s*(?:from\s+(\.*)([\w.]*)\s+import|import\s+([\w., ]+)))");
    for (std::string line; std::getline(file, line);) {
      std::string dots, from, names;
      if (!RE2::PartialMatch(line, kImport, &dots, &from, &names)) continue;
      if (!from.empty() || !dots.empty()) {
        AddImported(path.parent_path(), from, static_cast<int>(dots.size()));
      }
      std::istringstream list(names);
      for (std::string name; std::getline(list, name, ',');) {
        name.erase(0, name.find_first_not_of(' '));
        AddImported(path.parent_path(), name.substr(0, name.find(' ')), 0);
      }
    }
  }

  void AddImported(fs::path folder, const std::string& dotted, int dots) {
    std::string path = dotted;
    std::replace(path.begin(), path.end(), '.', '/');
    std::set<fs::path> roots;
    if (dots > 0) {
      for (int up = 1; up < dots; ++up) folder = folder.parent_path();
      roots = {folder};
    } else {
      roots = {folder, spec_.folder, fs::path(spec_.folder) / "src"};
    }
    for (const fs::path& root : roots) {
      Add(root / (path + ".py"));
      Add(root / path / "__init__.py");
      AddBelow(path.empty() ? root : root / path.substr(0, path.find('/')), "*.py");
    }
  }

  const TargetSpec& spec_;
  std::set<std::string> found_;
};

// Its standard output; what went wrong otherwise, as a version that no other is equal to.
std::string OutputOf(const TargetSpec& spec, const std::vector<std::string>& words) {
  std::string command = "cd " + ShellWord(spec.folder) + " && exec timeout 30";
  for (const std::string& word : words) command += " " + ShellWord(word);
  FILE* pipe = popen((command + " 2>/dev/null </dev/null").c_str(), "re");
  if (pipe == nullptr) return "";
  std::string text;
  char buffer[512];
  while (fgets(buffer, sizeof buffer, pipe) != nullptr) {
    if (text.size() < kMostOutput) text += buffer;
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return WIFEXITED(status) ? "failed with code " + std::to_string(WEXITSTATUS(status)) : "failed";
}

bool NamesPython(const std::string& word) {
  static const RE2 kPython(R"((?:.*/)?python[\d.]*)");
  return RE2::FullMatch(word, kPython);
}

}  // namespace

std::vector<std::string> FilesOfTarget(const TargetSpec& spec) { return Files(spec).Find(); }

std::string PythonOf(const TargetSpec& spec) {
  const std::vector<std::string> words = PlainWordsOf(spec);
  const auto found = std::find_if(words.begin(), words.end(), NamesPython);
  return found == words.end() ? "" : *found;
}

std::string FlagAgainstPythonPath(const TargetSpec& spec) {
  const std::vector<std::string> words = PlainWordsOf(spec);
  auto word = std::find_if(words.begin(), words.end(), NamesPython);
  if (word == words.end()) return "";
  // Python's own options stand before the program; -m, -c, -X and -W have a value.
  static const RE2 kIgnores("-[a-zA-Z]*[EI][a-zA-Z]*");
  for (++word; word != words.end() && word->starts_with("-"); ++word) {
    if (*word == "-m" || *word == "-c") break;
    if (*word == "-X" || *word == "-W") {
      if (++word == words.end()) break;
    } else if (RE2::FullMatch(*word, kIgnores)) {
      return *word;
    }
  }
  return "";
}

std::map<std::string, std::string> TakeFingerprint(const TargetSpec& spec) {
  std::map<std::string, std::string> versions;
  std::string python = PythonOf(spec);
  if (python.empty() && !spec.extras.packages.empty()) python = "python3";
  if (!python.empty()) {
    std::vector<std::string> words = {python, "-c", kAskPython};
    words.insert(words.end(), spec.extras.packages.begin(), spec.extras.packages.end());
    const std::string said = OutputOf(spec, words);
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t space = line.find(' ');
      if (space != std::string::npos) versions[line.substr(0, space)] = line.substr(space + 1);
    }
    if (!versions.contains("python")) versions = {{"python", said}};
  }
  if (!spec.extras.fingerprint_command.empty()) {
    std::string said = OutputOf(spec, spec.extras.fingerprint_command);
    while (!said.empty() && said.back() == '\n') said.pop_back();
    std::replace(said.begin(), said.end(), '\n', ';');
    versions["fingerprint"] = said;
  }
  return versions;
}

}  // namespace trainwreck
