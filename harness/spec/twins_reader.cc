#include "harness/spec/twins_reader.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "harness/spec/agreement.h"
#include "harness/spec/parts_reader.h"
#include "harness/spec/recipe_reader.h"

namespace trainwreck {
namespace {

constexpr int kMaxStep = 1'000'000'000;

void ReadTwin(const YamlNode& key, const YamlNode& node, const TargetDescription& target,
              Errors& errors, Draft& draft) {
  Twin twin;
  twin.name = key.text;
  draft.twin_names.push_back(key.text);
  SetPlace(key, errors, twin);
  CheckArmName(key, draft, errors);
  const std::string what = "twin '" + key.text + "'";
  Fields fields(node, what, errors, "such as {set: {accumulation: 4}}; {} is the same run again");
  twin.changes = ReadChanges(fields, what, target, errors);
  if (node.IsMap() && node.Find("fault") != nullptr) {
    twin.fault = ReadFault(key, node, target, fields, errors);
  }
  if (const YamlNode* phases = fields.Take("phases")) twin.phases = ReadPhases(*phases, errors);
  if (const YamlNode* waives = fields.Take("waives")) {
    twin.waives = ReadTexts(*waives, "'waives'", errors);
  }
  twin.when = ReadWhen(fields, errors);
  if (const YamlNode* note = fields.Take("note")) {
    twin.note = ReadText(*note, "'note'", errors).value_or("");
  }
  fields.RejectRest();
  draft.scenario.twins.push_back(std::move(twin));
}

bool IsOnLogScale(const std::vector<std::string>& signals, const TargetDescription& target) {
  return std::all_of(signals.begin(), signals.end(), [&](const std::string& signal) {
    const SignalInfo* info = target.FindSignal(signal.substr(0, signal.find_first_of("{@[")));
    return info != nullptr && info->scale == Scale::kLog;
  });
}

// {of: [loss, grad_norm], within: rounding}: the formula that it stands for.
std::optional<Check> ReadAgreement(const YamlNode& key, const YamlNode& node,
                                   const TargetDescription& target, Errors& errors, Draft& draft) {
  Fields fields(node, "check '" + key.text + "'", errors);
  const YamlNode* of = fields.Require("of", "of: loss");
  const YamlNode* within = fields.Require("within", "within: rounding, bitwise, or 1e-4");
  std::optional<formula::Amount> min_margin;
  if (const YamlNode* amount = fields.Take("min_margin")) min_margin = ReadAmount(*amount, errors);
  const std::vector<std::string> when = ReadWhen(fields, errors);
  fields.RejectRest();
  if (of == nullptr || within == nullptr) return std::nullopt;
  const std::vector<std::string> signals = ReadTexts(*of, "'of'", errors);
  const bool is_word = within->text == "rounding" || within->text == "bitwise";
  if (!is_word) {
    const std::optional<formula::Amount> share = formula::ParseAmount(within->text);
    const bool is_share = share && share->unit == formula::Unit::kPlain && within->is_plain;
    if (!is_share || !(share->value > 0 && share->value < 1)) {
      errors.Add(*within, "'within' must be rounding, bitwise, or a share of control's value",
                 "above 0 and below 1, such as 1e-4");
      return std::nullopt;
    }
  }
  std::string text;
  for (const std::string& signal : signals) {
    text += (text.empty() ? "" : " and ") + AgreementOn(signal, within->text, target);
  }
  draft.formulas["agree." + key.text] = {of, {}, /*is_made=*/true};
  formula::Formula::ParseResult parsed = formula::Formula::Parse(text);
  if (!parsed.formula) {
    errors.Add(*of, "'of' must name signals", "such as of: [loss, grad_norm, \"grad_norm{*}\"]");
    return std::nullopt;
  }
  const bool is_in_octaves =
      within->text == "rounding" || (!is_word && IsOnLogScale(signals, target));
  // Half of the distance in octaves that lies between agreeing and not.
  if (is_in_octaves && !min_margin) min_margin = formula::Amount{1, formula::Unit::kOctave};
  Check check{key.text, std::move(*parsed.formula), min_margin, "", when, {}, {}};
  SetPlace(*of, errors, check);
  return check;
}

void ReadAgreements(const YamlNode& node, const TargetDescription& target, Errors& errors,
                    Draft& draft) {
  if (!CheckFilledMap(node, "'agree'", errors,
                      "such as agree: {loss: {of: loss, within: rounding}}"))
    return;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& key = node.keys[i];
    CheckName(key, "the name of a check", errors);
    const bool is_short = node.items[i].IsMap() && node.items[i].Find("assert") == nullptr;
    std::optional<Check> check =
        is_short ? ReadAgreement(key, node.items[i], target, errors, draft)
                 : ReadCheck(key, node.items[i], "agree." + key.text, errors, draft);
    if (check) draft.scenario.agree.push_back(std::move(*check));
  }
}

void ReadBug(const YamlNode& key, const YamlNode& node, const TargetDescription& target,
             Errors& errors, Draft& draft) {
  CheckArmName(key, draft, errors);
  if (std::count(draft.fault_ids.begin(), draft.fault_ids.end(), key.text) > 0) {
    errors.Add(key, "a fault of 'inject' is called '" + key.text + "', too", "choose another name");
  }
  Bug bug;
  Fields fields(node, "fault '" + key.text + "'", errors);
  bug.fault = ReadFault(key, node, target, fields, errors);
  if (const YamlNode* twins = fields.Take("in")) {
    bug.twins = ReadTexts(*twins, "'in'", errors);
  } else {
    bug.twins = draft.twin_names;
  }
  if (const YamlNode* only = fields.Take("only_in_twins")) {
    bug.only_in_twins = ReadBool(*only, "'only_in_twins'", errors).value_or(false);
  }
  bug.when = ReadWhen(fields, errors);
  if (const YamlNode* note = fields.Take("note")) {
    bug.note = ReadText(*note, "'note'", errors).value_or("");
  }
  fields.RejectRest();
  draft.scenario.bugs.push_back(std::move(bug));
}

}  // namespace

void ReadTwins(Fields& fields, const TargetDescription& target, Errors& errors, Draft& draft) {
  const YamlNode* twins = fields.Take("twins");
  const YamlNode* agree = fields.Take("agree");
  const YamlNode* bugs = fields.Take("must_notice");
  if (twins == nullptr) {
    for (const YamlNode* given : {agree, bugs}) {
      if (given == nullptr) continue;
      errors.Add(*given, "this is about twins, and the scenario has none",
                 "add 'twins: {NAME: {set: ...}}'");
    }
    return;
  }
  if (CheckFilledMap(*twins, "'twins'", errors)) {
    for (std::size_t i = 0; i < twins->keys.size(); ++i) {
      ReadTwin(twins->keys[i], twins->items[i], target, errors, draft);
    }
  }
  if (agree == nullptr) {
    errors.Add(*draft.root->FindKey("twins"), "nothing says in what the twins agree with control",
               "add 'agree: {loss: {of: loss, within: rounding}}'");
  } else {
    ReadAgreements(*agree, target, errors, draft);
  }
  if (bugs == nullptr) {
    errors.Add(*draft.root->FindKey("twins"), "nothing shows that 'agree' can fail",
               "add 'must_notice: {NAME: {fault: FAULT}}': a bug that it has to see");
  } else if (CheckFilledMap(*bugs, "'must_notice'", errors)) {
    for (std::size_t i = 0; i < bugs->keys.size(); ++i) {
      ReadBug(bugs->keys[i], bugs->items[i], target, errors, draft);
    }
  }
}

std::vector<Phase> ReadPhases(const YamlNode& node, Errors& errors) {
  std::vector<Phase> phases;
  if (!node.IsList()) {
    errors.Add(node, std::string("'phases' must be a list of maps, but is ") + Describe(node),
               "such as [{name: train, until: 50}, {name: resume}]");
    return phases;
  }
  for (const YamlNode* item : ReadList(node, "'phases'", errors)) {
    Fields fields(*item, "a phase", errors);
    Phase phase;
    if (const YamlNode* name = fields.Require("name"); name != nullptr && name->IsScalar()) {
      CheckName(*name, "the name of a phase", errors);
      if (std::any_of(phases.begin(), phases.end(),
                      [&](const Phase& before) { return before.name == name->text; })) {
        errors.Add(*name, "two phases are called '" + name->text + "'");
      }
      phase.name = name->text;
    } else if (name != nullptr) {
      errors.Add(*name, std::string("the name of a phase must be text, but is ") + Describe(*name));
    }
    if (const YamlNode* until = fields.Take("until")) {
      phase.until = ReadInt(*until, "'until'", errors, 1, kMaxStep);
    } else if (fields.is_map() && item != &node.items.back()) {
      errors.Add(*item, "only the last phase goes on to the end: this one needs 'until'");
    }
    if (const YamlNode* shared = fields.Take("shared")) {
      phase.is_shared = ReadBool(*shared, "'shared'", errors).value_or(false);
      if (phase.is_shared && (!phases.empty() || node.items.size() < 2)) {
        errors.Add(*shared, "only the first of several phases can be shared");
      }
    }
    fields.RejectRest();
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace trainwreck
