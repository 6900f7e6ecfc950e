// The signals of a target of trainwreck.yaml, and the sources that they come from.
#include <re2/re2.h>

#include <algorithm>
#include <utility>

#include "harness/targets/python_hooks.h"
#include "harness/targets/target_extras.h"
#include "harness/targets/target_hints.h"
#include "harness/targets/target_reader.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {

void TargetReader::ReadSignalParts(Fields& fields) {
  ReadAdapter(fields);
  const bool has_own = !has_adapter_ && spec_.level < 2;
  const YamlNode* signals = has_own ? fields.Require("signals") : fields.Take("signals");
  if (BelongsHere(signals, "signals") &&
      CheckFilledMap(*signals, "'signals'", errors_, "such as {loss: {}}")) {
    for (std::size_t i = 0; i < signals->keys.size(); ++i) {
      ReadSignal(signals->keys[i], signals->items[i]);
    }
  }
  const bool needs_sources = spec_.level == 0 && has_own;
  const YamlNode* sources = needs_sources ? fields.Require("sources") : fields.Take("sources");
  if (sources != nullptr && spec_.level > 0) {
    errors_.Add(*sources,
                "a target of level " + std::to_string(spec_.level) +
                    " writes the trace itself and takes no 'sources'",
                "remove it, or 'level: " + std::to_string(spec_.level) + "'");
    return;
  }
  if (sources != nullptr) {
    for (const YamlNode* item : ReadList(*sources, "'sources'", errors_)) ReadSource(*item);
  }
  if (signals != nullptr) RejectWithoutSource(*signals);
  RejectModules();
}

bool TargetReader::HasSource(const std::string& own_name) const {
  const SignalInfo* info = FindSignal(own_name);
  const std::string& name = info == nullptr ? own_name : info->name;
  return std::any_of(spec_.sources.begin(), spec_.sources.end(),
                     [&](const SourceSpec& source) { return source.names.contains(name); });
}

void TargetReader::RejectWithoutSource(const YamlNode& signals) {
  const bool is_clear = std::none_of(spec_.sources.begin(), spec_.sources.end(),
                                     [](const SourceSpec& source) { return source.names.empty(); });
  const bool has_any = !spec_.sources.empty() || !spec_.hooks.empty();
  if (!is_clear || !has_any) return;  // what they would give is not known
  TargetDescription hooks;
  if (!spec_.hooks.empty()) hooks = DescribePythonHooks(spec_.hooks);
  for (const YamlNode& key : signals.keys) {
    if (HasSource(key.text) || hooks.FindSignal(key.text) != nullptr) continue;
    errors_.Add(
        key, "signal '" + key.text + "' comes from no source",
        "let a pattern have a group (?P<" + key.text + ">\\S+), or add a source of its own");
  }
}

void TargetReader::RejectModules() {
  if (spec_.level > 0 || per_module_.empty()) return;
  TargetDescription hooks;
  if (!spec_.hooks.empty()) hooks = DescribePythonHooks(spec_.hooks);
  for (const auto& [signal, node] : per_module_) {
    if (has_adapter_ && !HasSource(signal)) {
      const SignalInfo* of_hooks = hooks.FindSignal(signal);
      if (of_hooks == nullptr || of_hooks->per_module) continue;
    }
    errors_.Add(*node, "signal '" + signal + "' comes as one number a step, not per module",
                kWritesItsTrace);
  }
}

void TargetReader::ReadAdapter(Fields& fields) {
  const YamlNode* node = fields.Take("adapter");
  if (node == nullptr) return;
  has_adapter_ = true;
  if (ReadText(*node, "'adapter'", errors_).value_or("python") != "python") {
    errors_.Add(*node, "there is no adapter '" + node->text + "'", "write 'adapter: python'");
    return;
  }
  if (spec_.level > 0) {
    errors_.Add(*node, "an adapter is for a target of level 0",
                "remove it, or 'level: " + std::to_string(spec_.level) + "'");
    return;
  }
  spec_.hooks = FindPythonHooks();
  if (!spec_.hooks.empty()) return;
  errors_.Add(*node, "the hooks of 'adapter: python' are not installed beside this program",
              "install the wheel: docs/guide/out-of-tree.md, \"A wheel\"");
}

void TargetReader::ReadSignal(const YamlNode& key, const YamlNode& node) {
  SignalInfo info;
  info.name = key.text;
  CheckName(key, "the name of a signal", errors_);
  if (key.text == "time" || key.text == "step") {
    errors_.Add(key, "the harness has '" + key.text + "' itself", "choose another name");
  }
  Fields fields(node, "signal '" + key.text + "'", errors_, "write " + key.text + ": {}");
  const YamlNode* const role = fields.Take("role");
  if (role != nullptr) ReadSignalRole(*role, info);
  RejectTaken(role == nullptr ? key : *role, info);
  spec_.signal_positions[info.name] = key.position;
  if (const YamlNode* value = fields.Take("unit")) {
    info.unit = ReadText(*value, "'unit'", errors_).value_or("");
  }
  if (const YamlNode* value = fields.Take("doc")) {
    info.doc = ReadText(*value, "'doc'", errors_).value_or("");
  }
  if (const YamlNode* value = fields.Take("scale")) {
    info.scale = value->text == "log" ? Scale::kLog : Scale::kLinear;
    if (value->text != "log" && value->text != "linear") {
      errors_.Add(*value, "'scale' must be linear or log (positive, spans decades)");
    }
  }
  for (auto [name, flag] : {std::pair{"exact", &info.exact}, std::pair{"sparse", &info.sparse},
                            std::pair{"optional", &info.optional}}) {
    if (const YamlNode* value = fields.Take(name)) {
      *flag = ReadBool(*value, std::string("'") + name + "'", errors_).value_or(false);
    }
  }
  if (const YamlNode* value = fields.Take("per_module")) {
    info.per_module = ReadBool(*value, "'per_module'", errors_).value_or(false);
    if (info.per_module) per_module_[key.text] = value;
  }
  ReadFloor(fields, info.name, errors_, spec_.extras);
  fields.RejectRest();
  spec_.signals.push_back(std::move(info));
}

void TargetReader::ReadSignalRole(const YamlNode& node, SignalInfo& info) {
  const std::vector<std::string>& known = SignalRoles();
  const auto is_role = [&](const std::string& name) { return std::ranges::count(known, name) > 0; };
  if (!is_role(node.text)) {
    const std::string nearest = NearestName(node.text, known);
    errors_.Add(node, "no role of a signal is called '" + node.text + "'",
                nearest.empty() ? "one of: " + Join(known) : "did you mean '" + nearest + "'?");
  } else if (is_role(info.name) && info.name != node.text) {
    errors_.Add(node, "'" + info.name + "' is the name of a role itself",
                "give the signal another name, here and in 'sources'");
  } else if (info.name != node.text) {
    info.own_name = std::exchange(info.name, node.text);
  }
}

void TargetReader::RejectTaken(const YamlNode& at, const SignalInfo& info) {
  for (const SignalInfo& other : spec_.signals) {
    if (other.name != info.name) continue;
    const bool is_role = !other.own_name.empty();
    errors_.Add(at,
                is_role ? "'" + other.own_name + "' has the role '" + info.name + "' already"
                        : "the target has a signal '" + info.name + "' itself",
                is_role ? "remove one of the two" : "remove the role, or that signal");
  }
}

const SignalInfo* TargetReader::FindSignal(const std::string& own_name) const {
  const auto found = std::ranges::find(spec_.signals, own_name, OwnName);
  return found == spec_.signals.end() ? nullptr : &*found;
}

void TargetReader::TakeSource(const YamlNode& at, const std::string& signal,
                              const std::string& what, const std::string& where,
                              SourceSpec& source) {
  if (const SignalInfo* info = FindSignal(signal)) {
    source.names[info->name] = where;
    return;
  }
  std::vector<std::string> known;
  for (const SignalInfo& info : spec_.signals) known.push_back(OwnName(info));
  source.names[signal] = where;
  errors_.Add(at, what + " '" + signal + "' is none of the target's signals",
              SuggestName(signal, known));
}

void TargetReader::ReadSource(const YamlNode& node) {
  struct Kind {
    const char* key;
    SourceKind kind;
    const char* names;
  };
  static constexpr Kind kKinds[] = {{"stdout", SourceKind::kStdout, nullptr},
                                    {"stderr", SourceKind::kStderr, nullptr},
                                    {"output", SourceKind::kOutput, nullptr},
                                    {"csv", SourceKind::kCsv, "columns"},
                                    {"json_lines", SourceKind::kJsonLines, "fields"},
                                    {"tensorboard", SourceKind::kTensorBoard, "tags"}};
  Fields fields(node, "a source", errors_);
  if (!fields.is_map()) return;
  SourceSpec source;
  const Kind* kind = nullptr;
  for (const Kind& candidate : kKinds) {
    const YamlNode* where = fields.Take(candidate.key);
    if (where == nullptr) continue;
    if (kind != nullptr) {
      errors_.Add(*where,
                  std::string("a source is one of '") + kind->key + "' and '" + candidate.key +
                      "', not both",
                  "write two entries of 'sources'");
    }
    kind = &candidate;
    source.kind = candidate.kind;
    source.position = where->position;
    if (candidate.names == nullptr) {
      ReadPattern(*where, source);
    } else {
      source.path = ReadTemplate(*where, std::string("'") + candidate.key + "'");
    }
  }
  if (kind == nullptr) {
    const std::vector<std::string> kinds = {"stdout", "stderr",     "output",
                                            "csv",    "json_lines", "tensorboard"};
    errors_.Add(node,
                "a source must be one of stdout, stderr, output, csv, json_lines, tensorboard",
                node.keys.empty() ? "" : SuggestName(node.keys.front().text, kinds));
  } else if (kind->names != nullptr) {
    if (const YamlNode* names = fields.Require(
            kind->names, std::string(kind->names) + ": {" + FirstSignal() + ": COLUMN}"))
      ReadNames(*names, kind->names, source);
    if (source.kind != SourceKind::kTensorBoard) {
      if (const YamlNode* step = fields.Take("step")) {
        source.step = ReadText(*step, "'step'", errors_).value_or("");
      }
    }
  }
  if (const YamlNode* first = fields.Take("first_step")) {
    source.first_step = ReadInt(*first, "'first_step'", errors_, 0, 1'000'000'000).value_or(0);
  }
  if (kind != nullptr) fields.RejectRest();
  spec_.sources.push_back(std::move(source));
}

void TargetReader::ReadPattern(const YamlNode& node, SourceSpec& source) {
  source.pattern = ReadText(node, "a pattern", errors_).value_or("");
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 pattern(source.pattern, options);
  if (!pattern.ok()) {
    errors_.Add(node, "this is no regular expression: " + pattern.error(),
                PatternHint(source.pattern));
    return;
  }
  if (const std::string twice = GroupGivenTwice(source.pattern); !twice.empty()) {
    errors_.Add(node, "two groups of the pattern are called '" + twice + "'",
                "only one of them would be read: leave one without a name");
  }
  for (const auto& [name, index] : pattern.NamedCapturingGroups()) {
    if (name == "step") {
      source.step = name;
      continue;
    }
    TakeSource(node, name, "the group", name, source);
  }
  if (source.names.empty()) {
    errors_.Add(node, "the pattern has no named group that is a signal",
                "such as 'loss: (?P<loss>\\S+)'");
  }
}

void TargetReader::ReadNames(const YamlNode& node, const std::string& what, SourceSpec& source) {
  if (!CheckFilledMap(node, "'" + what + "'", errors_)) return;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& signal = node.keys[i].text;
    const auto name = ReadText(node.items[i], "'" + signal + "'", errors_);
    TakeSource(node.keys[i], signal, "'" + what + "':", name.value_or(""), source);
  }
}

}  // namespace trainwreck
