#include "harness/spec/references.h"

#include <algorithm>
#include <utility>

#include "harness/spec/parts_reader.h"
#include "harness/text/nearest.h"

namespace trainwreck {
namespace {

using formula::Formula;

class Resolver {
 public:
  Resolver(std::string section, std::vector<Check>& checks, const std::vector<std::string>& names,
           const TargetDescription& target, Errors& errors, Draft& draft)
      : section_(std::move(section)),
        checks_(checks),
        names_(names),
        target_(target),
        errors_(errors),
        draft_(draft) {}

  void Run() {
    for (Check& check : checks_) Resolve(check);
    std::erase_if(checks_, [&](const Check& check) { return states_[check.name] == kBroken; });
  }

  // A check outside of the section, such as `quality`: false when it must be dropped.
  bool RunFor(Check& check) { return Resolve(check, check.name) == kDone; }

 private:
  enum State { kNew, kOpen, kDone, kBroken };

  State Resolve(Check& check) { return Resolve(check, section_ + "." + check.name); }

  State Resolve(Check& check, const std::string& path) {
    State& state = states_[check.name];
    if (state != kNew) return state;
    state = kOpen;
    FormulaPlace& place = draft_.formulas.at(path);
    const std::string written = check.formula.text();
    std::string text;
    std::size_t done = 0;
    bool is_sound = true;
    for (const formula::Mention& mention : check.formula.mentions()) {
      if (!IsReference(mention, check, place, is_sound)) continue;
      Check* named = Find(mention.name);
      if (named == nullptr) {  // it has had its error
        is_sound = false;
        continue;
      }
      const State of_named = Resolve(*named);
      if (of_named != kDone) {
        is_sound = false;
        if (of_named == kOpen) {
          Fail(mention, place, "'" + mention.name + "' leads back to '" + check.name + "'",
               "checks cannot name each other in a circle");
        }
        continue;
      }
      text += written.substr(done, mention.begin - done);
      const std::size_t begin = text.size();
      text += "(" + named->formula.text() + ")";
      place.inserted.push_back({begin, text.size(), mention.begin, mention.end, mention.name});
      done = mention.end;
    }
    if (is_sound && done > 0) is_sound = Replace(text + written.substr(done), place, check);
    states_[check.name] = is_sound ? kDone : kBroken;
    return states_[check.name];
  }

  bool Replace(const std::string& text, const FormulaPlace& place, Check& check) {
    Formula::ParseResult parsed = Formula::Parse(text);
    for (const formula::FormulaError& error : parsed.errors) {
      errors_.Add(place.node->source, PlaceOf(place, error.begin, error.end, errors_),
                  error.message + ", with the checks that it names", error.hint);
    }
    if (parsed.formula) check.formula = std::move(*parsed.formula);
    return parsed.errors.empty();
  }

  bool IsReference(const formula::Mention& mention, const Check& check, const FormulaPlace& place,
                   bool& is_sound) {
    const bool is_here = Has(names_, mention.name);
    const bool is_other = !is_here && (Has(draft_.healthy_names, mention.name) ||
                                       Has(draft_.symptom_names, mention.name));
    const bool is_target =
        target_.FindEvent(mention.name) != nullptr || target_.FindSignal(mention.name) != nullptr;
    if (!is_here && (!is_other || is_target)) return false;
    if (is_target) {
      // It can only mean the event: a check does not name itself.
      if (mention.name == check.name) return false;
      Fail(mention, place,
           "'" + mention.name + "' is a check here and " +
               (target_.FindEvent(mention.name) != nullptr ? "an event" : "a signal") +
               " of the target",
           "rename the check; with parentheses, " + mention.name + "(), it is the event");
    } else if (is_other) {
      const bool is_healthy = Has(draft_.healthy_names, mention.name);
      Fail(mention, place,
           "'" + mention.name + "' is a " + (is_healthy ? "healthy check" : "symptom") +
               ", which cannot be named here",
           is_healthy && section_ == "symptoms"
               ? "a healthy check holds without the fault, too: name a symptom, or write it out"
               : "a symptom is named by symptoms, a healthy check by healthy checks and 'quality'");
    } else if (!mention.arm.empty()) {
      Fail(mention, place, "a check cannot be read in another arm", "write its formula out");
    } else if (mention.at_steps) {
      Fail(mention, place,
           "'" + mention.name + "' is a check and says something of the whole run, not of a step",
           "join checks with and, or, not and implies only");
    } else {
      return true;
    }
    is_sound = false;
    return false;
  }

  void Fail(const formula::Mention& mention, const FormulaPlace& place, std::string message,
            std::string hint) {
    errors_.Add(place.node->source,
                PlaceInFormula(*place.node, mention.begin, mention.end, errors_),
                std::move(message), std::move(hint));
  }

  Check* Find(const std::string& name) {
    for (Check& check : checks_) {
      if (check.name == name) return &check;
    }
    return nullptr;
  }

  static bool Has(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  const std::string section_;
  std::vector<Check>& checks_;
  const std::vector<std::string>& names_;
  const TargetDescription& target_;
  Errors& errors_;
  Draft& draft_;
  std::map<std::string, State> states_;
};

}  // namespace

void ResolveReferences(const TargetDescription& target, Errors& errors, Draft& draft) {
  Scenario& scenario = draft.scenario;
  Resolver healthy("healthy", scenario.healthy, draft.healthy_names, target, errors, draft);
  healthy.Run();
  Resolver("symptoms", scenario.symptoms, draft.symptom_names, target, errors, draft).Run();
  if (scenario.quality && !healthy.RunFor(*scenario.quality)) scenario.quality.reset();
}

Position PlaceOf(const FormulaPlace& place, std::size_t from, std::size_t to,
                 const Errors& errors) {
  if (place.is_made) return place.node->position;
  const auto written = [&](std::size_t at, bool is_end) {
    std::size_t shift = 0;  // how much longer the text has become before `at`
    for (const FormulaPlace::Inserted& part : place.inserted) {
      if (at < part.begin || (is_end && at == part.begin)) break;
      if (at < part.end || (is_end && at == part.end)) return is_end ? part.to : part.from;
      shift = part.end - part.to;
    }
    return at - shift;
  };
  return PlaceInFormula(*place.node, written(from, false), written(to, true), errors);
}

std::string ReferenceAt(const FormulaPlace& place, std::size_t from, std::size_t to) {
  for (const FormulaPlace::Inserted& part : place.inserted) {
    if (from >= part.begin && to <= part.end) return part.check;
  }
  return "";
}

}  // namespace trainwreck
