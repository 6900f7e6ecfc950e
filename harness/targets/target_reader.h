// The reader of one target of trainwreck.yaml, for the files of LoadTargetFile (target_spec.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/targets/target_spec.h"
#include "harness/yaml/fields.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

// The hint for what no source of level 0 gives.
inline constexpr char kWritesItsTrace[] =
    "remove it, or let the program write its trace itself, with 'level: 1'";

class TargetReader {
 public:
  TargetReader(const std::string& file, const YamlNode& name, const YamlNode& node, Errors& errors);
  TargetSpec Read();

 private:
  // Relative to the file.
  std::string ReadPath(const YamlNode& node, const std::string& what);
  // A target of level 2 says these itself.
  bool BelongsHere(const YamlNode* node, const std::string& key);
  bool IsWholeNumber(const std::string& placeholder) const;
  TemplateText ReadTemplate(const YamlNode& node, const std::string& what);
  std::vector<Arguments> ReadArguments(const YamlNode& node, const std::string& what);
  void ReadCommands(Fields& fields);
  void RejectPlaceholders(const YamlNode& node);

  // What the recipe of the target is (target_recipe_reader.cc).
  void ReadRecipeParts(Fields& fields);
  void ReadRecipe(const YamlNode& node);
  // `lr: 0.1` is short for `lr: {type: number, default: 0.1}`.
  std::optional<ParamInfo> ReadKey(const YamlNode& key, const YamlNode& node);
  // Only costs may be several: else the harness would not know which of two keys to change.
  void ReadRole(const YamlNode& node, ParamInfo& info);
  // A type that follows from a default must not follow from its quotes, or from a habit of
  // YAML 1.1.
  void RejectDisguise(const YamlNode& node);
  void RejectWildcards(const YamlNode& when_exists);
  void RejectHiddenLauncher(const YamlNode& node);
  void ReadRanks(const YamlNode& node);

  // What its signals are, and where they come from (target_signals_reader.cc).
  void ReadSignalParts(Fields& fields);
  void ReadAdapter(Fields& fields);
  bool HasSource(const std::string& own_name) const;
  void RejectWithoutSource(const YamlNode& signals);
  // A source gives one number a step; the hooks have some signals per module.
  void RejectModules();
  void ReadSignal(const YamlNode& key, const YamlNode& node);
  // From then on the name of the role is that of the signal, and that of its values in the trace.
  void ReadSignalRole(const YamlNode& node, SignalInfo& info);
  // `info`: one that is to be added.
  void RejectTaken(const YamlNode& at, const SignalInfo& info);
  const SignalInfo* FindSignal(const std::string& own_name) const;
  // `where`: the group, column, field or tag that has the signal.
  void TakeSource(const YamlNode& at, const std::string& signal, const std::string& what,
                  const std::string& where, SourceSpec& source);
  void ReadSource(const YamlNode& node);
  void ReadPattern(const YamlNode& node, SourceSpec& source);
  void ReadNames(const YamlNode& node, const std::string& what, SourceSpec& source);
  std::string FirstSignal() const {
    return spec_.signals.empty() ? "loss" : OwnName(spec_.signals[0]);
  }

  // The events that the program writes itself (target_events_reader.cc).
  void ReadEvents(Fields& fields);
  void ReadEvent(const YamlNode& key, const YamlNode& node);

  const YamlNode& node_;
  Errors& errors_;
  const std::string what_;
  TargetSpec spec_;
  bool is_sound_ = true;
  bool has_adapter_ = false;                           // also one that is wrong
  const YamlNode* launcher_left_out_at_ = nullptr;     // a map of ranks
  std::map<std::string, const YamlNode*> per_module_;  // signal -> where it says so
};

}  // namespace trainwreck
