#include "harness/keys/expected.h"

#include <stdexcept>
#include <utility>

#include "harness/yaml/fields.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {
namespace {

constexpr char kKind[] = "IgnoredKeys";

class ExpectedReader {
 public:
  ExpectedReader(const TargetDescription& target, Errors& errors)
      : target_(target), errors_(errors) {}

  std::vector<ExpectedIgnored> Read(const YamlNode& root) {
    Fields fields(root, "the file", errors_, "such as kind: IgnoredKeys");
    RequireWord(fields, "apiVersion", kApiVersion);
    RequireWord(fields, "kind", kKind);
    if (const YamlNode* node = fields.Require("ignored", "ignored: [{keys: K, reason: R}]")) {
      for (const YamlNode* entry : ReadList(*node, "'ignored'", errors_)) ReadEntry(*entry);
    }
    fields.RejectRest();
    return std::move(entries_);
  }

 private:
  void RequireWord(Fields& fields, const char* key, const char* word) {
    const YamlNode* node = fields.Require(key, std::string(key) + ": " + word);
    if (node != nullptr && node->text != word) {
      errors_.Add(*node, std::string("'") + key + "' must be " + word);
    }
  }

  std::set<KeyContext> ReadContexts(const YamlNode* node) {
    if (node == nullptr) return {std::begin(kKeyContexts), std::end(kKeyContexts)};
    std::set<KeyContext> contexts;
    for (const YamlNode* item : ReadList(*node, "'in'", errors_)) {
      if (const auto context = FindKeyContext(item->text)) {
        contexts.insert(*context);
        continue;
      }
      std::vector<std::string> known;
      for (const KeyContext context : kKeyContexts) known.push_back(ToString(context));
      errors_.Add(*item, "no context is called '" + item->text + "'",
                  SuggestName(item->text, known));
    }
    return contexts;
  }

  void ReadEntry(const YamlNode& node) {
    Fields fields(node, "an entry of 'ignored'", errors_, "such as {keys: K, reason: R}");
    const YamlNode* keys = fields.Require("keys", "keys: [KEY]");
    const YamlNode* reason = fields.Require("reason", "reason: why it is right");
    ExpectedIgnored entry;
    entry.contexts = ReadContexts(fields.Take("in"));
    if (reason != nullptr) entry.reason = ReadText(*reason, "'reason'", errors_).value_or("");
    fields.RejectRest();
    if (keys == nullptr) return;
    for (const YamlNode* key : ReadList(*keys, "'keys'", errors_)) {
      if (target_.FindRecipeKey(key->text) == nullptr) {
        std::vector<std::string> known;
        for (const ParamInfo& info : target_.recipe) known.push_back(info.name);
        errors_.Add(*key, "the target has no recipe key '" + key->text + "'",
                    SuggestName(key->text, known));
        continue;
      }
      entry.key = key->text;
      entries_.push_back(entry);
    }
  }

  const TargetDescription& target_;
  Errors& errors_;
  std::vector<ExpectedIgnored> entries_;
};

}  // namespace

ExpectedFile LoadExpected(const std::string& path, const TargetDescription& target) {
  std::string why;
  const std::optional<std::string> text = ReadSmallFile(path, why);
  if (!text) throw std::runtime_error(path + ": " + why);
  Errors errors;
  const int source = errors.AddSource(path, *text);
  ExpectedFile file;
  if (const std::optional<YamlNode> root = ParseYaml(*text, source, errors)) {
    file.entries = ExpectedReader(target, errors).Read(*root);
  }
  file.errors = errors.Sorted();
  return file;
}

}  // namespace trainwreck
