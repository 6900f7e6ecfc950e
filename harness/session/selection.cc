#include "harness/session/selection.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

#include "harness/protocol/parse_json.h"
#include "harness/protocol/plan.h"
#include "harness/session/session.h"
#include "harness/spec/fault_file.h"
#include "harness/text/clean_text.h"
#include "harness/text/files.h"
#include "harness/text/glob.h"
#include "harness/text/nearest.h"

namespace trainwreck {

namespace fs = std::filesystem;

struct WordExpression::Node {
  enum class Kind { kWord, kNot, kAnd, kOr } kind = Kind::kWord;
  std::string word;
  std::unique_ptr<Node> left, right;
};

// Precedence: not, and, or; parentheses.
class WordParser {
 public:
  using Node = WordExpression::Node;

  WordParser(const std::string& text, const std::string& option) : text_(text), option_(option) {}

  std::unique_ptr<Node> Parse() {
    std::unique_ptr<Node> root = ParseOr(0);
    if (Peek() == "&&" || Peek() == "||") {
      Fail(Peek() == "&&" ? "for '&&' write 'and'" : "for '||' write 'or'");
    }
    if (!Peek().empty()) Fail("'" + Peek() + "' stands where 'and' or 'or' should");
    return root;
  }

 private:
  static constexpr int kDepthLimit = 100;

  [[noreturn]] void Fail(const std::string& message) const {
    throw UsageError(option_ + " '" + text_ + "': " + message);
  }

  // The next token: a parenthesis or a word; empty at the end.
  std::string Peek() {
    std::size_t i = begin_;
    while (i < text_.size() && std::isspace(static_cast<unsigned char>(text_[i]))) ++i;
    std::size_t end = i;
    if (end < text_.size() && (text_[end] == '(' || text_[end] == ')')) {
      ++end;
    } else {
      while (end < text_.size() && !std::isspace(static_cast<unsigned char>(text_[end])) &&
             text_[end] != '(' && text_[end] != ')') {
        ++end;
      }
    }
    next_ = end;
    return text_.substr(i, end - i);
  }

  bool Take(const std::string& token) {
    if (Peek() != token) return false;
    begin_ = next_;
    return true;
  }

  std::unique_ptr<Node> Join(Node::Kind kind, std::unique_ptr<Node> left,
                             std::unique_ptr<Node> right) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }

  std::unique_ptr<Node> ParseOr(int depth) {
    if (depth > kDepthLimit) Fail("too deep");
    std::unique_ptr<Node> left = ParseAnd(depth);
    while (Take("or")) left = Join(Node::Kind::kOr, std::move(left), ParseAnd(depth));
    return left;
  }

  std::unique_ptr<Node> ParseAnd(int depth) {
    std::unique_ptr<Node> left = ParseNot(depth);
    while (Take("and")) left = Join(Node::Kind::kAnd, std::move(left), ParseNot(depth));
    return left;
  }

  std::unique_ptr<Node> ParseNot(int depth) {
    if (depth > kDepthLimit) Fail("too deep");
    if (Take("not")) return Join(Node::Kind::kNot, ParseNot(depth + 1), nullptr);
    if (Take("(")) {
      std::unique_ptr<Node> inner = ParseOr(depth + 1);
      if (!Take(")")) Fail("a ')' is missing");
      return inner;
    }
    std::string word = Peek();
    if (word.empty()) Fail("ends where a word should stand");
    if (word == ")" || word == "and" || word == "or") {
      Fail("'" + word + "' stands where a word should");
    }
    begin_ = next_;
    auto node = std::make_unique<Node>();
    node->word = word;
    return node;
  }

  const std::string& text_;
  const std::string& option_;
  std::size_t begin_ = 0;
  std::size_t next_ = 0;
};

WordExpression::WordExpression(const std::string& text, const std::string& option) {
  if (!text.empty()) root_ = WordParser(text, option).Parse();
}
WordExpression::~WordExpression() = default;
WordExpression::WordExpression(WordExpression&&) noexcept = default;

bool WordExpression::Matches(const std::function<bool(const std::string&)>& has_word) const {
  std::function<bool(const Node&)> matches = [&](const Node& node) {
    switch (node.kind) {
      case Node::Kind::kWord:
        return has_word(node.word);
      case Node::Kind::kNot:
        return !matches(*node.left);
      case Node::Kind::kAnd:
        return matches(*node.left) && matches(*node.right);
      case Node::Kind::kOr:
        return matches(*node.left) || matches(*node.right);
    }
    return false;
  };
  return root_ == nullptr || matches(*root_);
}

namespace {

bool IsScenarioFile(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

void SayOnce(const std::string& what) {
  static std::set<std::string> said;
  if (said.insert(what).second) std::cerr << "trainwreck: warning: " << CleanText(what) << "\n";
}

// Links to folders are not followed. A link that leads nowhere is no scenario (editors leave some);
// a folder that cannot be read may hold some, so that a suite without it must not pass.
void AddFilesBelow(const fs::path& folder, std::vector<std::string>& files) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    std::error_code leads_nowhere;
    const std::string path = entry->path().lexically_normal().string();
    if (fs::is_directory(entry->symlink_status(leads_nowhere))) {
      AddFilesBelow(entry->path(), files);
    } else if (IsScenarioFile(path)) {
      const fs::file_status status = entry->status(leads_nowhere);
      if (fs::is_regular_file(status)) {
        files.push_back(path);
      } else if (!fs::exists(status)) {
        SayOnce(path + " is left out: a link that leads nowhere");
      }
    }
    entry.increment(error);
  }
  if (!error) return;
  throw ConfigurationError("cannot read the folder '" + folder.string() + "': " + error.message() +
                           "; the scenarios in it would be left out");
}

std::vector<std::string> FilesBelow(const fs::path& folder) {
  std::vector<std::string> files;
  AddFilesBelow(folder, files);
  std::erase_if(files, IsFaultFile);
  std::erase_if(files, IsDefaultsFile);
  std::erase_if(files, IsInvariantsFile);
  return files;
}

// A path that cannot be, a link in a circle say, is neither.
bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// scenarios/nan/x.yaml -> nan/x
std::string NameOf(const std::string& file, const std::string& root) {
  fs::path name = fs::path(file).lexically_relative(fs::path(root).lexically_normal());
  return name.replace_extension().string();
}

// A name that means two things would leave one of them out, silently.
void RejectAmbiguousName(const std::string& word, const std::string& by_name) {
  if (word.empty() || word[0] == '.' || word[0] == '/' || word.back() == '/') return;
  if (!IsFolder(by_name)) return;
  const std::string file = by_name + ".yaml";
  if (IsFile(file) && !IsInvariantsFile(file)) {
    throw UsageError("'" + word + "' is a scenario and a folder: say " + file + " or " + by_name +
                     "/");
  }
  std::error_code error;
  if (IsFolder(word) && !fs::equivalent(word, by_name, error) && !FilesBelow(word).empty()) {
    throw UsageError("'" + word + "' is a folder here and under the scenarios root: say ./" + word +
                     " or " + by_name);
  }
}

std::string ScenarioHint(const std::string& word, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.ends_with("/" + word)) return " (did you mean '" + name + "'?)";
  }
  const std::string meant = NearestHint(word, names);
  return meant.empty() ? "; 'trainwreck list' shows all scenarios" : meant;
}

std::vector<std::string> OneScenario(const std::string& file, const std::string& root) {
  if (IsDefaultsFile(file)) {
    throw UsageError("'" + file + "' holds the defaults of its folder and no scenario; they are " +
                     "checked with each scenario that takes them over");
  }
  if (IsInvariantsFile(file)) {
    throw UsageError("'" + file + "' holds invariants and no scenario; it is checked with every " +
                     "call: say 'trainwreck validate'");
  }
  if (IsFaultFile(file)) {
    throw UsageError("'" + file + "' holds faults and no scenario; those below " + root +
                     " are checked with every call: say 'trainwreck validate'");
  }
  return {fs::path(file).lexically_normal().string()};
}

std::vector<std::string> FindOne(const std::string& word, const std::string& root) {
  if (IsFile(word)) return OneScenario(word, root);
  std::string by_name = root + "/" + word;
  RejectAmbiguousName(word, by_name);
  if (IsFolder(word)) {
    std::vector<std::string> files = FilesBelow(word);
    if (!files.empty()) return files;
    if (!fs::exists(by_name))
      throw UsageError("no scenario (*.yaml) lies below '" + word +
                       "'; 'trainwreck new scenario FAMILY/NAME' writes one");
  }
  const bool is_folder = IsFolder(by_name);
  if (const std::string named = by_name + ".yaml";
      IsFile(named) && !(is_folder && IsInvariantsFile(named))) {
    return OneScenario(named, root);
  }
  if (is_folder) return FilesBelow(by_name);
  std::vector<std::string> found, names;
  if (IsFolder(root)) {
    for (const std::string& file : FilesBelow(root)) {
      names.push_back(NameOf(file, root));
      if (GlobMatches(word, names.back())) found.push_back(file);
    }
  }
  if (found.empty()) {
    throw UsageError("no scenario, file or folder '" + word + "'" + ScenarioHint(word, names));
  }
  return found;
}

}  // namespace

std::vector<SelectedFile> FindScenarioFiles(const std::vector<std::string>& paths,
                                            const std::string& scenarios_root) {
  std::vector<std::string> words = paths;
  if (words.empty()) {
    if (!IsFolder(scenarios_root)) {
      throw UsageError("there is no folder '" + scenarios_root + "'; name files or folders to run");
    }
    words.push_back(scenarios_root);
  }
  std::set<std::pair<std::string, std::string>> found;
  for (const std::string& word : words) {
    std::string name = word, point;
    std::size_t bracket = word.find('[');
    if (bracket != std::string::npos && word.back() == ']' && !IsFile(word)) {
      name = word.substr(0, bracket);
      point = word.substr(bracket + 1, word.size() - bracket - 2);
    }
    for (std::string& file : FindOne(name, scenarios_root)) found.emplace(std::move(file), point);
  }
  std::vector<SelectedFile> files;
  for (const auto& [path, point] : found) files.push_back({path, point});
  return files;
}

std::vector<std::string> FindFaultFiles(const std::string& scenarios_root) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(scenarios_root,
                                         fs::directory_options::skip_permission_denied, error);
  while (!error && entry != fs::recursive_directory_iterator()) {
    const std::string path = entry->path().lexically_normal().string();
    if (IsScenarioFile(path) && IsFile(path) && IsFaultFile(path)) files.push_back(path);
    entry.increment(error);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> PathsOf(const std::vector<SelectedFile>& files) {
  std::vector<std::string> paths;
  for (const SelectedFile& file : files) {
    if (paths.empty() || paths.back() != file.path) paths.push_back(file.path);
  }
  return paths;
}

namespace {

constexpr const char* kCostsSchema = "trainwreck/costs";
constexpr int kCostsVersion = 1;

double CostOf(const Case& one) {
  double cost = 0;
  for (const ArmPlan& arm : one.arms) {
    for (const Run& run : arm.runs) cost += run.cost;
  }
  return cost;
}

// Seconds by case, of a verdicts.json or of a file of costs.
std::map<std::string, double> ReadCosts(const std::string& path) {
  if (path.empty()) return {};
  std::map<std::string, double> seconds;
  try {
    const Json file = ParseJson(ReadFile(path).value_or(""));
    if (file.value("schema", "") == kCostsSchema) {
      if (file.at("version") != kCostsVersion) throw std::runtime_error("of another version");
      return file.at("seconds").get<std::map<std::string, double>>();
    }
    for (const Json& verdict : file.at("verdicts")) {
      const auto took = verdict.at("wall_seconds").get<double>();
      if (took > 0) seconds[verdict.at("case").get<std::string>()] = took;  // not what was skipped
    }
  } catch (const std::exception& error) {
    throw UsageError(
        "--shard-costs " + path +
        " is neither a verdicts.json nor what 'trainwreck history costs' prints: " + error.what());
  }
  return seconds;
}

// What each case takes; in seconds, if any was measured.
std::vector<double> CostsOf(const std::vector<Case>& cases,
                            const std::map<std::string, double>& measured) {
  std::vector<double> costs;
  double estimated = 0, seconds = 0;  // of those that were measured
  for (const Case& one : cases) {
    costs.push_back(CostOf(one));
    const auto found = measured.find(one.name);
    if (found == measured.end()) continue;
    estimated += costs.back();
    seconds += found->second;
  }
  if (seconds <= 0) return costs;
  const double scale = estimated > 0 ? seconds / estimated : 1;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto found = measured.find(cases[i].name);
    costs[i] = found == measured.end() ? costs[i] * scale : found->second;
  }
  return costs;
}

using PointsOfFiles = std::map<std::string, std::vector<std::string>>;  // as the user named them

bool PointIsWanted(const Case& one, const PointsOfFiles& files,
                   const std::vector<std::string>& points) {
  if (!points.empty() && std::none_of(points.begin(), points.end(), [&](const std::string& glob) {
        return GlobMatches(glob, one.point->name);
      })) {
    return false;
  }
  const auto named = files.find(one.scenario->file);
  if (named == files.end()) return true;
  return std::any_of(named->second.begin(), named->second.end(), [&](const std::string& point) {
    return point.empty() || GlobMatches(point, one.point->name);
  });
}

}  // namespace

std::string CostsText(const std::map<std::string, double>& seconds) {
  const Json file = {
      {"schema", kCostsSchema}, {"version", kCostsVersion}, {"seconds", Json(seconds)}};
  return file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<int> AssignShards(const std::vector<Case>& cases, int shard_count,
                              const std::map<std::string, double>& measured) {
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::vector<double> costs = CostsOf(cases, measured);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(-costs[a], cases[a].name) < std::pair(-costs[b], cases[b].name);
  });
  using Load = std::pair<double, int>;  // of a shard
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (int i = 0; i < shard_count; ++i) loads.emplace(0.0, i);
  std::vector<int> shard(cases.size(), 0);
  for (std::size_t index : order) {
    const auto [load, least] = loads.top();
    loads.pop();
    shard[index] = least;
    loads.emplace(load + costs[index] + 1e-9, least);  // those that cost nothing are spread as well
  }
  return shard;
}

std::vector<Case> SelectCases(std::vector<Case> cases, const SelectionOptions& options,
                              const std::vector<SelectedFile>& files,
                              const std::vector<std::string>& points) {
  WordExpression keyword(options.keyword, "-k");
  WordExpression tag(options.tag, "-t");
  PointsOfFiles named;
  for (const SelectedFile& file : files) named[file.path].push_back(file.point);
  std::vector<Case> chosen;
  for (Case& one : cases) {
    const std::vector<std::string>& tags = one.scenario->tags;
    bool wanted = PointIsWanted(one, named, points) &&
                  keyword.Matches([&](const std::string& word) {
                    return one.name.find(word) != std::string::npos;
                  }) &&
                  tag.Matches([&](const std::string& word) {
                    return std::find(tags.begin(), tags.end(), word) != tags.end();
                  });
    if (wanted) chosen.push_back(std::move(one));
  }
  return chosen;
}

std::vector<Case> KeepShard(std::vector<Case> cases, const SelectionOptions& options) {
  if (options.shard_count <= 1) return cases;
  std::vector<int> shard = AssignShards(cases, options.shard_count, ReadCosts(options.shard_costs));
  std::vector<Case> mine;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (shard[i] == options.shard_index - 1) mine.push_back(std::move(cases[i]));
  }
  return mine;
}

}  // namespace trainwreck
