// The comments of a YAML file, each attached to the entry that it is about. yaml-cpp drops
// comments, so code that rewrites a file has to carry them over.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "harness/yaml/yaml.h"

namespace trainwreck {

// The comments of one entry of a map or list. Each text begins with '#'.
struct AttachedComments {
  std::vector<std::string> before;  // lines of their own, above the entry
  std::string beside;               // at the end of the entry's first line
  std::vector<std::string> after;   // lines of their own, below the entry and indented like it

  bool empty() const { return before.empty() && beside.empty() && after.empty(); }
};

class Comments {
 public:
  // An entry is identified by the position of its key or, in a list, of its value.
  static const YamlNode& AnchorOf(const YamlNode& parent, std::size_t index) {
    return parent.IsMap() ? parent.keys[index] : parent.items[index];
  }
  const AttachedComments& Of(const YamlNode& parent, std::size_t index) const;
  AttachedComments& Of(const YamlNode& parent, std::size_t index);
  // Whether anything below `node` has a comment.
  bool AreBelow(const YamlNode& node) const;
  // Moves the entry's comments to the next entry, else to the one before, else to the end of the
  // file.
  void Detach(const YamlNode& parent, std::size_t index);

  std::vector<std::string> header;  // above everything
  std::vector<std::string> footer;  // below everything

 private:
  using Key = std::tuple<int, int, bool>;  // line, column, in a list
  static Key KeyOf(const YamlNode& parent, std::size_t index);
  std::map<Key, AttachedComments> attached_;
};

// All comments of `text`, in the order of the lines. Empty, with the reason in `why`, where a
// comment cannot be told from text for sure.
std::optional<std::vector<std::string>> ListComments(const YamlNode& root, const std::string& text,
                                                     std::string& why);

// The same, attached to the entries of `root`, which is the tree of `text`.
std::optional<Comments> FindComments(const YamlNode& root, const std::string& text,
                                     std::string& why);

}  // namespace trainwreck
