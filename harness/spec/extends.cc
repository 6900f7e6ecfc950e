#include "harness/spec/extends.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "harness/spec/defaults.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// What a scenario says about itself alone.
bool IsInherited(const std::string& key) {
  return key != "name" && key != "title" && key != "extends" && key.rfind("x-", 0) != 0;
}

class Chain {
 public:
  Chain(const LoadOptions& options, Errors& errors) : options_(options), errors_(errors) {}

  std::optional<YamlNode> Parse(const std::string& text, const std::string& file) {
    files_.push_back(fs::path(file).lexically_normal());
    const int source = errors_.AddSource(file, text);
    std::optional<YamlNode> root = ParseYaml(text, source, errors_);
    if (!root || !root->IsMap()) return root;
    if (const YamlNode* extends = root->Find("extends")) {
      // Without its base most of a scenario is missing: nothing more can be said about it.
      std::optional<YamlNode> base = ParseBase(*extends);
      if (!base || !base->IsMap()) return std::nullopt;
      root = Over(Inheritable(std::move(*base)), std::move(*root));
    }
    std::optional<YamlNode> defaults = ParseDefaults(file, options_.scenarios_root, errors_);
    if (defaults && !defaults->IsMap()) return std::nullopt;
    return defaults ? Over(std::move(*defaults), std::move(*root)) : root;
  }

 private:
  static YamlNode Over(YamlNode below, YamlNode above) {
    below.source = above.source;
    below.position = above.position;
    below.is_partial = below.is_partial || above.is_partial;
    MergeInto(below, std::move(above));
    return below;
  }

  std::optional<YamlNode> ParseBase(const YamlNode& extends) {
    if (!extends.IsScalar()) {
      errors_.Add(extends, std::string("'extends' must be a file, but is ") + Describe(extends));
      return std::nullopt;
    }
    const fs::path wanted(extends.text);
    const bool goes_up = std::find(wanted.begin(), wanted.end(), "..") != wanted.end();
    if (wanted.is_absolute() || goes_up || wanted.extension() != ".yaml") {
      errors_.Add(extends, "'extends' must be a .yaml file under the folder of the scenarios",
                  "written from there, without '..': such as nan/lr-too-high.yaml");
      return std::nullopt;
    }
    const fs::path path = (fs::path(options_.scenarios_root) / wanted).lexically_normal();
    if (std::find(files_.begin(), files_.end(), path) != files_.end()) {
      errors_.Add(extends, "'extends' goes in a circle: " + extends.text + " leads back here");
      return std::nullopt;
    }
    if (files_.size() > static_cast<std::size_t>(kMaxExtends)) {
      errors_.Add(extends, "more than " + std::to_string(kMaxExtends) + " files extend each other");
      return std::nullopt;
    }
    std::string why;
    std::optional<std::string> text;
    if (StaysInside(path)) {
      text = ReadSmallFile(path.string(), why);
    } else {
      why = "it leads out of the folder of the scenarios";
    }
    if (!text) {
      errors_.Add(extends, "cannot extend '" + extends.text + "': " + why,
                  "the path is taken from " + options_.scenarios_root + "/");
      return std::nullopt;
    }
    return Parse(*text, path.string());
  }

  // Symbolic links could lead anywhere. Where the extending file is a link itself, as in the
  // folders that Bazel runs tests in, so are its neighbours, and whoever made them is trusted.
  bool StaysInside(const fs::path& path) const {
    std::error_code error;
    if (fs::is_symlink(files_.front(), error)) return true;
    const fs::path root = fs::weakly_canonical(options_.scenarios_root, error);
    const fs::path real = fs::weakly_canonical(path, error);
    return !error &&
           std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
  }

  static YamlNode Inheritable(YamlNode base) {
    YamlNode rest = base;
    rest.keys.clear();
    rest.items.clear();
    for (std::size_t i = 0; i < base.keys.size(); ++i) {
      if (!IsInherited(base.keys[i].text)) continue;
      rest.keys.push_back(std::move(base.keys[i]));
      rest.items.push_back(std::move(base.items[i]));
    }
    return rest;
  }

  const LoadOptions& options_;
  Errors& errors_;
  std::vector<fs::path> files_;
};

}  // namespace

std::optional<YamlNode> ParseWithExtends(const std::string& text, const std::string& file,
                                         const LoadOptions& options, Errors& errors) {
  return Chain(options, errors).Parse(text, file);
}

}  // namespace trainwreck
