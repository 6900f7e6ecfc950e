#include "harness/formula/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/formula/detectors.h"
#include "harness/formula/typing.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck::formula {
namespace {

constexpr int kMaxGlobs = 2;  // of one comparison: all pairs are looked at
constexpr double kMaxDetectorWindow = 4096;
constexpr double kMaxDetectorCount = 1e9;

class Checker {
 public:
  explicit Checker(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    if (vocabulary.target == nullptr) return;
    for (const SignalInfo& signal : vocabulary.target->signals) signals_.push_back(signal.name);
    for (const EventInfo& event : vocabulary.target->events) events_.push_back(event.name);
  }

  std::vector<FormulaError> Run(const Node& root, bool at_steps) {
    CheckFormula(root, {.at_steps = at_steps});
    std::stable_sort(errors_.begin(), errors_.end(),
                     [](const auto& a, const auto& b) { return a.begin < b.begin; });
    return std::move(errors_);
  }

 private:
  struct Place {
    bool at_steps = false;    // inside a temporal operator
    bool in_ranks = false;    // inside all_ranks, any_rank or spread
    bool in_modules = false;  // inside any_module
    // Read at every step by what is nearest around it: where it is not recorded, that has no step
    // to leave out.
    std::string_view every_step_of;
  };

  void Fail(std::size_t begin, std::size_t end, std::string message, std::string hint = "") {
    errors_.push_back({begin, end, std::move(message), std::move(hint)});
  }
  void Fail(const Node& node, std::string message, std::string hint = "") {
    Fail(node.begin, node.end, std::move(message), std::move(hint));
  }

  int last_step() const { return vocabulary_.planned_steps - 1; }
  bool knows_steps() const { return vocabulary_.planned_steps > 0; }

  void CheckFormula(const Node& node, Place place) {
    switch (node.kind) {
      case Kind::kCompare:
        return CheckCompare(node, place);
      case Kind::kEvent:
        return CheckEvent(node);
      case Kind::kDetector:
        return CheckDetector(node, place);
      case Kind::kHolds:
        NeedSteps(node, place);
        place.at_steps = true;  // one error is enough
        place.every_step_of = "holds";
        CheckCount(node, "for", vocabulary_.planned_steps);
        break;
      case Kind::kAllRanks:
      case Kind::kAnyRank:
        EnterRanks(node, place);
        break;
      case Kind::kAnyModule:
        EnterModules(node, place);
        break;
      default:
        if (IsTemporal(node.kind)) {
          if (IsPast(node.kind)) NeedStepsToLookBack(node, place);
          CheckWindow(node, place);
          place.at_steps = true;
          place.every_step_of = node.kind == Kind::kUntil      ? "until"
                                : node.kind == Kind::kPrecedes ? "precedes"
                                                               : "";
        }
    }
    for (const auto& child : node.children) CheckFormula(*child, place);
  }

  void NeedSteps(const Node& node, const Place& place) {
    if (place.at_steps) return;
    const std::string text = ToText(node);
    Fail(
        node, "this is true or false at a step; say at which",
        "say always, eventually, never or at_end: eventually " + (text.size() < 60 ? text : "..."));
  }

  void NeedStepsToLookBack(const Node& node, const Place& place) {
    if (place.at_steps) return;
    const std::string text = ToText(node);
    Fail(node, "this looks back from a step; say from which",
         "say always, eventually, never or at_end: at_end " + (text.size() < 60 ? text : "..."));
  }

  void EnterRanks(const Node& node, Place& place) {
    if (place.in_ranks) Fail(node, "ranks are already chosen further out");
    place.in_ranks = true;
  }

  void EnterModules(const Node& node, Place& place) {
    if (place.in_modules) Fail(node, "any_module inside any_module");
    place.in_modules = true;
    const std::size_t globs = GlobsOf(node).size();
    if (globs == 0) Fail(node, "any_module without a module pattern inside", "update_norm{*} > 0");
    LimitGlobs(node, globs);
  }

  static std::set<std::string> GlobsOf(const Node& node) {
    std::set<std::string> globs;
    ForEach(node, [&](const Node& below) {
      if (below.kind == Kind::kSignal && below.glob) globs.insert(*below.glob);
    });
    return globs;
  }

  void LimitGlobs(const Node& node, std::size_t globs) {
    if (globs > kMaxGlobs) {
      Fail(node,
           fmt::format("{} different module patterns; at most {} vary together", globs, kMaxGlobs));
    }
  }

  void CheckCompare(const Node& node, const Place& place) {
    const std::size_t before = errors_.size();
    bool has_signal = false;
    for (const auto& side : node.children) {
      CheckExpression(*side, place);
      ForEach(*side, [&](const Node& below) {
        has_signal |= below.kind == Kind::kSignal || below.kind == Kind::kStep;
      });
    }
    if (!has_signal) Fail(node, "no signal on either side: this never changes");
    LimitGlobs(node, GlobsOf(node).size());
    if (errors_.size() > before || !IsEquality(node.op) || vocabulary_.target == nullptr) return;
    const auto is_whole = [](const Node& side) {
      return side.kind == Kind::kNumber && side.number == std::floor(side.number);
    };
    if ((is_whole(node.child(0)) && IsAsRecorded(node.child(1))) ||
        (is_whole(node.child(1)) && IsAsRecorded(node.child(0)))) {
      return;
    }
    for (const auto& side : node.children) {
      if (IsExact(*side, *vocabulary_.target)) continue;
      Fail(*side, fmt::format("{} on a value that is not exact", ToString(node.op)),
           "== and != are for counts, digests and exit codes, and for a recorded value and a whole "
           "number: max(x[:]) == 0; else give a tolerance: abs(a - b) <= 1e-6");
    }
  }

  void CheckExpression(const Node& node, Place place) {
    switch (node.kind) {
      case Kind::kSignal:
        return CheckOperand(node, place);
      case Kind::kAggregate:
        return CheckSliced(node.child(0), fmt::format("{}(loss[-20:])", ToString(node.aggregate)));
      case Kind::kOverlap:
        for (const auto& child : node.children) {
          CheckSliced(*child, "overlap(sample_digest[50:], sample_digest[:50])");
          const SignalInfo* info = InfoOf(*child);
          if (info != nullptr && !info->exact) {
            Fail(*child, "overlap needs exact signals; '" + info->name + "' is none");
          }
        }
        return;
      case Kind::kRecipe:
        return Fail(node, "recipe() stands in invariants only",
                    "write the number, or see docs/guide/invariants.md");
      case Kind::kStep:
        if (!place.at_steps) {
          Fail(node, "step() is a number at a step; say at which",
               "say always, eventually or at_end");
        }
        return;
      case Kind::kTotal:
        if (place.in_ranks) Fail(node, "ranks are already chosen further out");
        place.in_ranks = true;
        break;
      case Kind::kSpread:
        if (place.in_ranks) Fail(node, "ranks are already chosen further out");
        if (vocabulary_.world_size == 1) {
          Fail(node, "spread over a single rank is always 0", "set parallel.ranks");
        }
        place.in_ranks = true;
        break;
      case Kind::kDistance:
      case Kind::kRounding:
        return CheckApart(node, place);
      case Kind::kSeedSpread:
        return CheckSeedSpread(node, place);
      default:
        break;
    }
    for (const auto& child : node.children) CheckExpression(*child, place);
  }

  // distance and rounding compare a signal of this run with control's, step by step.
  void CheckApart(const Node& node, const Place& place) {
    const Node& operand = node.child(0);
    const bool is_bare = operand.kind == Kind::kSignal && !operand.slice.given;
    const std::string name(node.kind == Kind::kDistance ? "distance" : "rounding");
    if (!is_bare || !operand.arm.empty()) {
      return Fail(operand, "a signal without arm and slice must stand here",
                  "always distance(loss) <= 8 * rounding(loss)");
    }
    if (!vocabulary_.arms.contains("control")) {
      Fail(node, name + " needs an arm 'control', and there is none here");
    }
    if (node.kind == Kind::kRounding && !vocabulary_.has_rounding) {
      Fail(node, "no arm here differs from control by rounding alone",
           "rounding is for the `agree` of a scenario with twins");
    }
    if (!CheckSignal(operand)) return;
    const SignalInfo* info = InfoOf(operand);
    if (info != nullptr && info->exact) {
      return Fail(operand, "'" + info->name + "' is exact, so no rounding changes it",
                  fmt::format("always {0} == control.{0}", ToText(operand)));
    }
    if (NeedsEveryStep(operand, place) || place.at_steps) return;
    Fail(node, fmt::format("{} is a number at a step; say at which", name),
         fmt::format("say always, eventually or at_end: always {}", ToText(node)));
  }

  // One number of each run, read where no step and no rank is chosen.
  void CheckSeedSpread(const Node& node, const Place& place) {
    if (!vocabulary_.arms.contains("control")) {
      Fail(node, "seed_spread needs an arm 'control', and there is none here");
    }
    if (place.at_steps || place.in_ranks || place.in_modules) {
      return Fail(node, "seed_spread is about whole runs, and stands in no other operator",
                  "seed_spread(mean(loss[-10:])) > 3");
    }
    ForEach(node.child(0), [&](const Node& below) {
      if (below.kind == Kind::kSeedSpread) Fail(below, "seed_spread inside seed_spread");
      if (below.kind == Kind::kSignal && below.glob) {
        Fail(below, "seed_spread takes no module pattern", "name one module");
      }
    });
    CheckExpression(node.child(0), place);
  }

  const SignalInfo* InfoOf(const Node& node) const {
    if (node.kind != Kind::kSignal || vocabulary_.target == nullptr) return nullptr;
    return vocabulary_.target->FindSignal(node.name);
  }

  // A signal as a number of its own.
  void CheckOperand(const Node& node, const Place& place) {
    if (!CheckSignal(node)) return;
    if (node.slice.given) {
      if (node.slice.is_index) return;
      return Fail(node, "a slice is many numbers; make one of them",
                  "mean(...), median, min, max, first, last, sum, std, slope or count");
    }
    if (NeedsEveryStep(node, place)) return;
    if (!place.at_steps) {
      Fail(node, fmt::format("bare signal '{}': at which step?", node.name),
           fmt::format("say always, eventually or at_end, or give a slice: mean({}[-20:])",
                       node.name));
    }
  }

  bool NeedsEveryStep(const Node& node, const Place& place) {
    const SignalInfo* info = InfoOf(node);
    if (info == nullptr || !info->sparse || place.every_step_of.empty()) return false;
    Fail(node,
         fmt::format("'{}' is recorded at some steps only, {} reads all", node.name,
                     place.every_step_of),
         "put it inside always, eventually, never, once or historically, or give it a slice");
    return true;
  }

  void CheckSliced(const Node& node, const std::string& example) {
    if (node.kind != Kind::kSignal) {
      return Fail(node, "a slice of a signal must stand here", example);
    }
    if (!CheckSignal(node)) return;
    if (!node.slice.given || node.slice.is_index) {
      Fail(node, "a slice of the signal must stand here",
           fmt::format("{}[:] for the whole run, {}[-20:] for its end", node.name, node.name));
    }
  }

  // A program of somebody's own has few signals: all of them are shown.
  std::string SignalHint(const std::string& name) const {
    constexpr std::size_t kShown = 8;
    std::string meant = DidYouMean(name, signals_);
    if (!meant.empty() || signals_.empty() || signals_.size() > kShown) return meant;
    return "known: " + Join(signals_);
  }

  // Name, arm, module pattern, rank and slice. False when the name is unknown.
  bool CheckSignal(const Node& node) {
    CheckArm(node);
    if (node.rank && (*node.rank < 0 || *node.rank >= vocabulary_.world_size)) {
      Fail(node, fmt::format("rank {} of a run with {} rank{}", *node.rank, vocabulary_.world_size,
                             vocabulary_.world_size == 1 ? "" : "s"));
    }
    if (node.slice.given) CheckSlice(node.slice);
    if (vocabulary_.target == nullptr) return true;
    const SignalInfo* info = vocabulary_.target->FindSignal(node.name);
    if (info == nullptr) {
      const bool is_event = vocabulary_.target->FindEvent(node.name) != nullptr;
      Fail(node, fmt::format("unknown signal '{}'", node.name),
           is_event ? fmt::format("'{}' is an event: eventually {}(...)", node.name, node.name)
                    : SignalHint(node.name));
      return false;
    }
    if (node.glob && !info->per_module) {
      Fail(node, fmt::format("'{}' is not recorded per module", node.name));
    }
    return true;
  }

  void CheckArm(const Node& node) {
    if (node.arm.empty() || vocabulary_.arms.contains(node.arm)) return;
    const std::vector<std::string> arms(vocabulary_.arms.begin(), vocabulary_.arms.end());
    std::string hint = DidYouMean(node.arm, arms);
    if (hint.empty()) {
      hint = arms.empty() ? "there is no other arm to compare with here" : "one of: " + Join(arms);
    }
    Fail(node.arm_begin, node.arm_begin + node.arm.size(),
         fmt::format("unknown arm '{}'", node.arm), hint);
  }

  void CheckSlice(const Slice& slice) {
    if (!knows_steps()) return;
    const int steps = vocabulary_.planned_steps;
    auto place = [&](int bound) { return bound < 0 ? bound + steps : bound; };
    const int from = slice.from ? place(*slice.from) : 0;
    const int to = slice.is_index ? from + 1 : slice.to ? place(*slice.to) : steps;
    if (from < 0 || to < 0 || from > steps || to > steps) {
      Fail(slice.begin, slice.end,
           fmt::format("outside the run, which has {} steps: 0 to {}", steps, last_step()));
    } else if (from >= to) {
      Fail(slice.begin, slice.end,
           fmt::format("an empty slice: from step {} to before {}", from, to));
    }
  }

  void CheckEvent(const Node& node) {
    CheckArm(node);
    if (vocabulary_.target == nullptr) return;
    const EventInfo* info = vocabulary_.target->FindEvent(node.name);
    if (info == nullptr) return UnknownEvent(node);
    for (const Filter& filter : node.filters) {
      if (filter.key == "rank" || filter.key == "step") continue;
      if (filter.key == "id" && node.name == "fired") continue;
      if (std::find(info->fields.begin(), info->fields.end(), filter.key) == info->fields.end()) {
        const std::string hint = DidYouMean(filter.key, info->fields);
        Fail(filter.begin, filter.end,
             fmt::format("event '{}' has no field '{}'", node.name, filter.key),
             hint.empty() ? "its fields: " + Join(info->fields) : hint);
      }
    }
    if (node.fault && !vocabulary_.fault_ids.contains(*node.fault)) {
      const std::vector<std::string> ids(vocabulary_.fault_ids.begin(),
                                         vocabulary_.fault_ids.end());
      Fail(node, fmt::format("no fault '{}' is injected", *node.fault),
           DidYouMean(*node.fault, ids));
    }
  }

  void UnknownEvent(const Node& node) {
    if (vocabulary_.target->FindSignal(node.name) != nullptr) {
      return Fail(node, fmt::format("'{}' is a signal, a number", node.name),
                  "compare it: < <= > >= == !=");
    }
    std::vector<std::string> known = events_;
    if (node.has_call) {
      for (const std::string& name : FunctionNames()) known.push_back(name);
    } else {
      known.insert(known.end(), signals_.begin(), signals_.end());
      known.insert(known.end(), vocabulary_.checks.begin(), vocabulary_.checks.end());
    }
    Fail(node,
         fmt::format("unknown {} '{}'", node.has_call ? "event or function" : "event or signal",
                     node.name),
         DidYouMean(node.name, known));
  }

  void CheckDetector(const Node& node, const Place& place) {
    NeedSteps(node, place);
    const Node& operand = node.child(0);
    if (operand.kind != Kind::kSignal || operand.slice.given) {
      Fail(operand, "a signal without a slice must stand here",
           "eventually[10:60] nonfinite(loss)");
    } else if (CheckSignal(operand)) {
      const SignalInfo* info = InfoOf(operand);
      if (node.detector->judges_each_sample) {
        NeedsEveryStep(operand, place);
      } else if (info != nullptr && info->sparse) {
        Fail(operand, fmt::format("'{}' is recorded at some steps only", operand.name));
      }
    }
    bool usable = true;
    for (const std::string_view key : node.detector->parameters) {
      const bool is_count = node.detector->Counts(key);
      usable = (is_count ? CheckCount(node, std::string(key),
                                      key == "window" ? kMaxDetectorWindow : kMaxDetectorCount)
                         : CheckPositive(node, std::string(key))) &&
               usable;
    }
    if (!usable || node.detector->refuse == nullptr) return;
    if (const auto refusal = node.detector->refuse(node)) {
      const Parameter& parameter = node.parameters.at(std::string(refusal->parameter));
      Fail(parameter.begin, parameter.end, refusal->message);
    }
  }

  bool CheckPositive(const Node& node, const std::string& key) {
    auto found = node.parameters.find(key);
    if (found == node.parameters.end() || found->second.value > 0) return true;
    Fail(found->second.begin, found->second.end, key + " must be positive");
    return false;
  }

  bool CheckCount(const Node& node, const std::string& key, double most) {
    auto found = node.parameters.find(key);
    if (found == node.parameters.end()) return true;
    const Parameter& parameter = found->second;
    if (knows_steps()) most = std::min<double>(most, vocabulary_.planned_steps);
    const bool bounded = most >= 1;
    if (parameter.value >= 1 && parameter.value == std::floor(parameter.value) &&
        (!bounded || parameter.value <= most)) {
      return true;
    }
    Fail(parameter.begin, parameter.end,
         bounded ? fmt::format("{} must be a whole number from 1 to {}", key, most)
                 : key + " must be a whole number, at least 1");
    return false;
  }

  void CheckWindow(const Node& node, const Place& place) {
    const Window& window = node.window;
    if (!window.given) return;
    auto fail = [&](std::string message, std::string hint = "") {
      Fail(window.begin, window.end, std::move(message), std::move(hint));
    };
    if (node.kind == Kind::kAtEnd) return fail("at_end is one step: it takes no window");
    if (window.from && window.to && *window.from > *window.to) return fail("an empty window");
    if (window.in_seconds) {
      if (node.kind == Kind::kUntil || IsPast(node.kind)) {
        return fail(fmt::format("{} takes a window in steps", node.kind == Kind::kUntil ? "until"
                                                              : node.kind == Kind::kOnce
                                                                  ? "once"
                                                                  : "historically"));
      }
      if (node.kind == Kind::kPrecedes && place.at_steps) {
        fail("precedes takes seconds only where no temporal operator is around it");
      }
      return;
    }
    if (!knows_steps()) return;
    const double most = std::max(window.from.value_or(0), window.to.value_or(0));
    if (most > last_step()) {
      fail(fmt::format("the window reaches step {}, the run's last is {}", most, last_step()),
           "both ends of a window are inside it");
    }
  }

  const Vocabulary& vocabulary_;
  std::vector<std::string> signals_;
  std::vector<std::string> events_;
  std::vector<FormulaError> errors_;
};

}  // namespace

std::vector<FormulaError> CheckTree(const Node& root, const Vocabulary& vocabulary, bool at_steps) {
  return Checker(vocabulary).Run(root, at_steps);
}

}  // namespace trainwreck::formula
