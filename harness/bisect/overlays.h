// Releases of Python packages, each installed alone into a folder of its own in the user's cache.
// In front of PYTHONPATH such a folder is an overlay: the release takes the place of the installed
// one, and the environment stays as it is.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace trainwreck {

// A package and one of its versions.
struct Release {
  std::string package, version;
  std::string Text() const { return package + "==" + version; }
};

class Overlays {
 public:
  // `python` is the Python that runs the target, `log` a file for what pip says. Throws UsageError
  // where there is no such Python, or no pip for it.
  Overlays(std::string python, std::string log);

  struct Answer {
    bool ok = false;
    std::string why;          // not `ok`: one line
    bool is_machine = false;  // the network or the disk failed: that tells nothing of the package
    double seconds = 0;
  };
  // The versions that pip lists for this Python, in the order of pip, from the user's own
  // configuration: indexes, certificates, constraints. Pre-releases too, but no yanked ones.
  Answer List(const std::string& package, std::vector<std::string>& versions) const;
  bool Has(const Release& release) const;
  // Whole or not at all. One that could not be installed is tried again the next time.
  Answer Install(const Release& release, double limit_seconds) const;
  std::string FolderOf(const Release& release) const;
  // Whether the release's own modules can be imported, in `folder` with `environment`, and come
  // from its overlay.
  Answer Import(const Release& release, const std::string& folder,
                const std::map<std::string, std::string>& environment, double limit_seconds) const;

  const std::string& python() const { return python_; }
  const std::string& log() const { return log_; }

 private:
  Answer Call(std::vector<std::string> command, const std::string& folder,
              std::map<std::string, std::string> environment, double limit_seconds) const;
  Answer Pip(const std::vector<std::string>& arguments, double limit_seconds = 0) const;
  void FindPip(const std::string& path);

  std::string python_, log_;
  std::vector<std::string> pip_;
  std::string kind_;   // of Python and of the indexes that pip reads: part of each folder's name
  std::string cache_;  // folder of all overlays
};

// "Foo.Bar_baz" -> "foo-bar-baz": the names are of one package.
std::string NormalPackage(const std::string& name);

}  // namespace trainwreck
