// YAML for scenario files: a tree of maps, lists and scalars, each with its place in the file.
// Stricter than the language: no anchors, aliases, tags, merge keys, duplicate keys or second
// documents; bounded in depth and size, so that a foreign file can be read safely.
//
//   Errors errors;
//   int source = errors.AddSource("nan/x.yaml", text);
//   std::optional<YamlNode> root = ParseYaml(text, source, errors);
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "harness/yaml/diagnostic.h"

namespace trainwreck {

inline constexpr std::size_t kMaxScenarioBytes = std::size_t{256} * 1024;
inline constexpr int kMaxYamlDepth = 32;

struct YamlNode {
  // kBad stands for something rejected already (an alias, say): nothing more is said about it.
  enum class Kind { kNull, kScalar, kMap, kList, kBad };
  Kind kind = Kind::kNull;
  std::string text;             // of a scalar
  bool is_plain = true;         // a scalar without quotes or block marks
  bool is_partial = false;      // of a map: some of its keys were rejected
  int source = 0;               // index of the file
  Position position;            // columns count bytes
  std::vector<YamlNode> keys;   // of a map, parallel to `items`
  std::vector<YamlNode> items;  // of a map or list

  bool IsScalar() const { return kind == Kind::kScalar; }
  bool IsMap() const { return kind == Kind::kMap; }
  bool IsList() const { return kind == Kind::kList; }
  const YamlNode* Find(const std::string& key) const;     // the value; nullptr when absent
  const YamlNode* FindKey(const std::string& key) const;  // the key itself
};

const char* Describe(const YamlNode& node);  // "a map", "a list", "text", "empty"

// Collects the errors of one scenario, also those in the files that it extends.
class Errors {
 public:
  int AddSource(const std::string& name, const std::string& text);  // returns its index
  int SourceCount() const { return static_cast<int>(sources_.size()); }
  const std::string& SourceName(int source) const { return sources_[source].name; }
  // The line without its newline, empty when there is no such line; counts from 1.
  const std::string& SourceLine(int source, int line) const;
  int LineCount(int source) const;

  // Adds a thing that this target lacks and a target of a higher level might have: see
  // Scenario::unserved.
  void AddUnserved(const std::string& what) { unserved_.push_back(what); }
  const std::vector<std::string>& unserved() const { return unserved_; }

  void Add(const YamlNode& at, std::string message, std::string hint = "");
  void Add(int source, Position position, std::string message, std::string hint = "");
  std::size_t size() const { return found_.size(); }
  bool empty() const { return found_.empty(); }
  std::vector<Diagnostic> Sorted() const;

 private:
  struct Source {
    std::string name;
    std::vector<std::string> lines;
  };
  struct Found {
    int source;
    Diagnostic diagnostic;
  };
  std::vector<Source> sources_;
  std::vector<std::string> unserved_;
  std::vector<Found> found_;
  std::set<std::tuple<int, int, int, std::string>> seen_;  // what is the same is said once
};

// Empty when the file cannot be read; `why` then says so.
std::optional<std::string> ReadSmallFile(const std::string& path, std::string& why);

// Empty when the text has no tree at all; a tree may come with errors, too.
std::optional<YamlNode> ParseYaml(const std::string& text, int source, Errors& errors);

}  // namespace trainwreck
