// trainwreck fmt: writes scenario files in their one form.
#include <filesystem>
#include <iostream>

#include "harness/cli/verb.h"
#include "harness/session/selection.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/spec/canonical.h"
#include "harness/spec/fault_file.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

struct FmtOptions {
  CommonOptions common;
  std::vector<std::string> paths;
  bool check = false;
};

// With the defaults of folders, which are no scenarios and have the same form.
std::vector<std::string> FilesToFormat(const FmtOptions& options, const std::string& root) {
  std::vector<std::string> files, words;
  const auto add_defaults = [&](const fs::path& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().lexically_normal().string();
      if (IsDefaultsFile(path)) files.push_back(path);
    }
  };
  for (const std::string& path : options.paths) {
    if (IsDefaultsFile(path) && fs::is_regular_file(path)) {
      files.push_back(path);
      continue;
    }
    words.push_back(path);
    for (const std::string& folder : {path, root + "/" + path}) {
      if (!fs::is_directory(folder)) continue;
      add_defaults(folder);
      break;
    }
  }
  if (options.paths.empty()) add_defaults(root);
  if (options.paths.empty() || !words.empty()) {
    for (std::string& path : PathsOf(FindScenarioFiles(words, root))) {
      files.push_back(std::move(path));
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

int FmtVerb(const FmtOptions& options) {
  const std::string root = FindScenariosRoot(options.common);
  const bool color = WantsColor(options.common.color, 2);
  std::size_t changed = 0, broken = 0;
  const std::vector<std::string> files = FilesToFormat(options, root);
  for (const std::string& file : files) {
    Errors errors;
    std::string why;
    const std::optional<std::string> text = ReadSmallFile(file, why);
    if (!text) throw UsageError("cannot read '" + file + "': " + why);
    const std::optional<std::string> formatted = CanonicalScenario(*text, file, root, errors);
    for (const Diagnostic& error : errors.Sorted()) std::cerr << Format(error, color);
    if (!formatted) {
      ++broken;
    } else if (*formatted != *text) {
      ++changed;
      std::cout << file << (options.check ? ": would be changed\n" : ": changed\n");
      if (!options.check) WriteWholeFile(file, *formatted);
    }
  }
  std::cout << files.size() << (files.size() == 1 ? " file, " : " files, ") << changed
            << (options.check ? " to change" : " changed");
  if (broken > 0) std::cout << ", " << broken << " left as they are";
  std::cout << "\n";
  if (broken > 0) return kExitInvalid;
  return options.check && changed > 0 ? kExitFailed : kExitPassed;
}

void Declare(VerbArguments& arguments, FmtOptions& options) {
  arguments.Positional("PATHS", options.paths, "scenario files or folders; none: all");
  arguments.Flag("--check", options.check, "change nothing; exit with 1 where a file would change");
  arguments.Common(options.common);
}

const VerbRegistration registration("fmt", "Write scenario files in their one form", kLooking + 1,
                                    Declare, FmtVerb);

}  // namespace
}  // namespace trainwreck
