#include "harness/formula/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/formula/detectors.h"

namespace trainwreck::formula {
namespace {

const std::vector<FunctionInfo>& Functions() {
  static const std::vector<FunctionInfo> functions = [] {
    std::vector<FunctionInfo> all = {
        {"mean", Kind::kAggregate, Aggregate::kMean, 1, {}},
        {"median", Kind::kAggregate, Aggregate::kMedian, 1, {}},
        {"min", Kind::kAggregate, Aggregate::kMin, 1, {}},
        {"max", Kind::kAggregate, Aggregate::kMax, 1, {}},
        {"first", Kind::kAggregate, Aggregate::kFirst, 1, {}},
        {"last", Kind::kAggregate, Aggregate::kLast, 1, {}},
        {"sum", Kind::kAggregate, Aggregate::kSum, 1, {}},
        {"std", Kind::kAggregate, Aggregate::kStd, 1, {}},
        {"slope", Kind::kAggregate, Aggregate::kSlope, 1, {}},
        {"count", Kind::kAggregate, Aggregate::kCount, 1, {}},
        {"overlap", Kind::kOverlap, {}, 2, {}},
        {"spread", Kind::kSpread, {}, 1, {}},
        {"total", Kind::kTotal, {}, 1, {}},
        {"recipe", Kind::kRecipe, {}, 0, {}},
        {"step", Kind::kStep, {}, 0, {}},
        {"log", Kind::kLog, {}, 1, {}},
        {"cos", Kind::kCos, {}, 1, {}},
        {"sqrt", Kind::kSqrt, {}, 1, {}},
        {"abs", Kind::kAbs, {}, 1, {}},
        {"distance", Kind::kDistance, {}, 1, {}},
        {"rounding", Kind::kRounding, {}, 1, {}},
        {"seed_spread", Kind::kSeedSpread, {}, 1, {}},
        {"holds", Kind::kHolds, {}, 1, {"for"}},
        {"all_ranks", Kind::kAllRanks, {}, 1, {}},
        {"any_rank", Kind::kAnyRank, {}, 1, {}},
        {"any_module", Kind::kAnyModule, {}, 1, {}},
    };
    for (const Detector& detector : Detectors()) {
      all.push_back({detector.name, Kind::kDetector, {}, 1, detector.parameters, &detector});
    }
    return all;
  }();
  return functions;
}

// How tightly a node's own operator binds; children that bind less need parentheses.
enum Binding {
  kImpliesB = 1,
  kOrB,
  kAndB,
  kBinaryTemporalB,
  kPrefixB,
  kCompareB,
  kSumB,
  kProductB,
  kSignB,
  kPrimaryB
};

Binding BindingOf(const Node& node) {
  switch (node.kind) {
    case Kind::kImplies:
      return kImpliesB;
    case Kind::kOr:
      return kOrB;
    case Kind::kAnd:
      return kAndB;
    case Kind::kUntil:
    case Kind::kPrecedes:
      return kBinaryTemporalB;
    case Kind::kNot:
    case Kind::kAlways:
    case Kind::kEventually:
    case Kind::kNever:
    case Kind::kAtEnd:
    case Kind::kOnce:
    case Kind::kHistorically:
      return kPrefixB;
    case Kind::kCompare:
      return kCompareB;
    case Kind::kAdd:
    case Kind::kSubtract:
      return kSumB;
    case Kind::kMultiply:
    case Kind::kDivide:
      return kProductB;
    case Kind::kNegate:
      return kSignB;
    default:
      return kPrimaryB;
  }
}

std::string Enclosed(const Node& node, int least) {
  std::string text = ToText(node);
  return BindingOf(node) < least ? "(" + text + ")" : text;
}

std::string WindowText(const Window& window) {
  if (!window.given) return "";
  const char* unit = window.in_seconds ? "s" : "";
  std::string text = "[";
  if (window.from) text += fmt::format("{}{}", *window.from, unit);
  text += ":";
  if (window.to) text += fmt::format("{}{}", *window.to, unit);
  return text + "]";
}

std::string SignalText(const Node& node) {
  std::string text = node.arm.empty() ? node.name : node.arm + "." + node.name;
  if (node.glob) text += "{" + *node.glob + "}";
  if (node.rank) text += fmt::format("@{}", *node.rank);
  if (node.slice.given) {
    text += "[";
    if (node.slice.from) text += std::to_string(*node.slice.from);
    if (!node.slice.is_index) text += ":";
    if (node.slice.to) text += std::to_string(*node.slice.to);
    text += "]";
  }
  return text;
}

std::string Quoted(const std::string& text) {
  const char quote = text.find('"') == std::string::npos ? '"' : '\'';
  return quote + text + quote;
}

std::string EventText(const Node& node) {
  std::string arguments;
  auto add = [&](const std::string& text) { arguments += (arguments.empty() ? "" : ", ") + text; };
  const bool builtin = node.name == "event" || FindFunction(node.name) != nullptr;
  if (builtin) add(node.name);
  if (node.fault) add(Quoted(*node.fault));
  for (const Filter& filter : node.filters) {
    add(filter.key + (filter.op == CompareOp::kEqual ? "=" : std::string(ToString(filter.op))) +
        (filter.is_number ? fmt::format("{}", filter.number) : Quoted(filter.text)));
  }
  const std::string prefix = node.arm.empty() ? "" : node.arm + ".";
  return prefix + (builtin ? "event" : node.name) + "(" + arguments + ")";
}

std::string_view WordOf(Kind kind) {
  switch (kind) {
    case Kind::kImplies:
      return "implies";
    case Kind::kOr:
      return "or";
    case Kind::kAnd:
      return "and";
    case Kind::kUntil:
      return "until";
    case Kind::kPrecedes:
      return "precedes";
    case Kind::kNot:
      return "not";
    case Kind::kAlways:
      return "always";
    case Kind::kEventually:
      return "eventually";
    case Kind::kNever:
      return "never";
    case Kind::kAtEnd:
      return "at_end";
    case Kind::kOnce:
      return "once";
    case Kind::kHistorically:
      return "historically";
    case Kind::kAdd:
      return "+";
    case Kind::kSubtract:
      return "-";
    case Kind::kMultiply:
      return "*";
    case Kind::kDivide:
      return "/";
    default:
      break;
  }
  for (const FunctionInfo& info : Functions()) {
    if (info.kind == kind) return info.name;
  }
  return "?";
}

std::string CallText(const Node& node) {
  std::string text(node.kind == Kind::kAggregate  ? ToString(node.aggregate)
                   : node.kind == Kind::kDetector ? node.detector->name
                                                  : WordOf(node.kind));
  text += "(" + (node.kind == Kind::kRecipe ? node.name : "");
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    text += (i > 0 ? ", " : "") + ToText(node.child(i));
  }
  for (const auto& [key, parameter] : node.parameters) {
    text += fmt::format(", {}={}", key, parameter.value);
  }
  return text + ")";
}

}  // namespace

bool IsExpression(Kind kind) { return kind <= Kind::kDivide; }

bool IsTemporal(Kind kind) { return kind >= Kind::kAlways; }

bool IsPast(Kind kind) { return kind == Kind::kOnce || kind == Kind::kHistorically; }

const FunctionInfo* FindFunction(std::string_view name) {
  for (const FunctionInfo& info : Functions()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

std::vector<std::string> FunctionNames() {
  std::vector<std::string> names = {"event"};
  for (const FunctionInfo& info : Functions()) names.emplace_back(info.name);
  return names;
}

std::string_view ToString(CompareOp op) {
  switch (op) {
    case CompareOp::kLess:
      return "<";
    case CompareOp::kLessEqual:
      return "<=";
    case CompareOp::kGreater:
      return ">";
    case CompareOp::kGreaterEqual:
      return ">=";
    case CompareOp::kEqual:
      return "==";
    case CompareOp::kNotEqual:
      return "!=";
  }
  return "?";
}

std::string_view ToString(Aggregate aggregate) {
  for (const FunctionInfo& info : Functions()) {
    if (info.kind == Kind::kAggregate && info.aggregate == aggregate) return info.name;
  }
  return "?";
}

std::string ToText(const Node& node) {
  const int own = BindingOf(node);
  switch (node.kind) {
    case Kind::kNumber:
      return fmt::format("{}", node.number);
    case Kind::kSignal:
      return SignalText(node);
    case Kind::kEvent:
      return EventText(node);
    case Kind::kNegate:
      return "-" + Enclosed(node.child(0), own + 1);
    case Kind::kAdd:
    case Kind::kSubtract:
    case Kind::kMultiply:
    case Kind::kDivide:
      return fmt::format("{} {} {}", Enclosed(node.child(0), own), WordOf(node.kind),
                         Enclosed(node.child(1), own + 1));
    case Kind::kCompare:
      return fmt::format("{} {} {}", Enclosed(node.child(0), own + 1), ToString(node.op),
                         Enclosed(node.child(1), own + 1));
    case Kind::kNot:
    case Kind::kAlways:
    case Kind::kEventually:
    case Kind::kNever:
    case Kind::kAtEnd:
    case Kind::kOnce:
    case Kind::kHistorically:
      return fmt::format("{}{} {}", WordOf(node.kind), WindowText(node.window),
                         Enclosed(node.child(0), own));
    case Kind::kUntil:
    case Kind::kPrecedes:
      return fmt::format("{} {}{} {}", Enclosed(node.child(0), own + 1), WordOf(node.kind),
                         WindowText(node.window), Enclosed(node.child(1), own + 1));
    case Kind::kImplies:
      return fmt::format("{} implies {}", Enclosed(node.child(0), own + 1),
                         Enclosed(node.child(1), own));
    case Kind::kAnd:
    case Kind::kOr: {
      std::string text = Enclosed(node.child(0), own + 1);
      for (std::size_t i = 1; i < node.children.size(); ++i) {
        text += fmt::format(" {} {}", WordOf(node.kind), Enclosed(node.child(i), own + 1));
      }
      return text;
    }
    default:
      return CallText(node);
  }
}

}  // namespace trainwreck::formula
