// The syntax tree of a formula, and the names of its built-in functions.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainwreck::formula {

enum class Kind {
  // Expressions: a number, at a step or constant over the run.
  kNumber,
  kSignal,
  kAggregate,   // mean(x[-20:])
  kOverlap,     // overlap(a[..], b[..])
  kSpread,      // spread(x): over ranks
  kTotal,       // total(x): over ranks
  kDistance,    // distance(x): from control's
  kRounding,    // rounding(x): how far rounding alone takes control's
  kSeedSpread,  // seed_spread(e): over the seeds, as a multiple of control's
  kRecipe,      // recipe(optimizer.lr): what the run was asked for
  kStep,        // step(): the current step
  kLog,         // log(e); the kinds below also take one expression
  kCos,
  kSqrt,
  kAbs,
  kNegate,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  // Atoms.
  kCompare,
  kDetector,
  kEvent,
  // Formulas over formulas.
  kHolds,
  kAllRanks,
  kAnyRank,
  kAnyModule,
  kNot,
  kAnd,
  kOr,
  kImplies,
  kAlways,
  kEventually,
  kNever,
  kAtEnd,
  kUntil,
  kPrecedes,
  kOnce,
  kHistorically,
};

enum class CompareOp { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };
enum class Aggregate { kMean, kMedian, kMin, kMax, kFirst, kLast, kSum, kStd, kSlope, kCount };

// [from:to] of a temporal operator, both ends inside.
struct Window {
  bool given = false;
  bool in_seconds = false;
  std::optional<double> from;
  std::optional<double> to;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// [from:to] of a signal, half open, or [from] alone: one step. Negative: from the planned end.
struct Slice {
  bool given = false;
  bool is_index = false;
  std::optional<int> from;
  std::optional<int> to;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// key=value of an event, or key<=number and the like.
struct Filter {
  std::string key;
  CompareOp op = CompareOp::kEqual;  // or an order, with a number
  bool is_number = false;
  double number = 0;
  std::string text;
  std::size_t begin = 0;
  std::size_t end = 0;
};

// key=value of a detector.
struct Parameter {
  double value = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct Detector;  // in detectors.h

struct Node {
  Kind kind = Kind::kNumber;
  std::size_t begin = 0;  // bytes of the formula's text
  std::size_t end = 0;
  int depth = 1;
  std::vector<std::unique_ptr<Node>> children;

  double number = 0;                            // kNumber
  std::string arm;                              // kSignal, kEvent; empty: the run itself
  std::size_t arm_begin = 0;                    // where the arm stands: control.mean(loss[:5])
  std::string name;                             // of the signal, event or recipe key
  bool has_call = false;                        // kEvent: written with parentheses
  std::optional<std::string> glob;              // kSignal
  std::optional<int> rank;                      // kSignal: written with @
  Slice slice;                                  // kSignal
  Aggregate aggregate = Aggregate::kMean;       // kAggregate
  CompareOp op = CompareOp::kLess;              // kCompare
  Window window;                                // temporal operators
  const Detector* detector = nullptr;           // kDetector
  std::map<std::string, Parameter> parameters;  // kDetector, kHolds
  std::optional<std::string> fault;             // kEvent: fired(ID)
  std::vector<Filter> filters;                  // kEvent

  const Node& child(std::size_t index) const { return *children[index]; }
  double parameter(const std::string& key) const {
    auto found = parameters.find(key);
    return found == parameters.end() ? std::numeric_limits<double>::quiet_NaN()
                                     : found->second.value;
  }
};

bool IsExpression(Kind kind);
bool IsTemporal(Kind kind);  // always, eventually, never, at_end, until, precedes, once, ...
bool IsPast(Kind kind);      // once, historically: their windows lie before the step

// A function by its name: what it makes and what it must be given.
struct FunctionInfo {
  std::string_view name;
  Kind kind;
  Aggregate aggregate;
  int arguments;                             // expressions or formulas
  std::vector<std::string_view> parameters;  // key=value, all required
  const Detector* detector = nullptr;        // kDetector
};
const FunctionInfo* FindFunction(std::string_view name);
std::vector<std::string> FunctionNames();

constexpr bool IsEquality(CompareOp op) {
  return op == CompareOp::kEqual || op == CompareOp::kNotEqual;
}

std::string_view ToString(CompareOp op);
std::string_view ToString(Aggregate aggregate);

// The formula's text in its plainest form; parses back to the same tree.
std::string ToText(const Node& node);

// Calls `visit(node)` for the node and all below it, in the order of the text.
template <typename Visit>
void ForEach(const Node& node, Visit&& visit) {
  visit(node);
  for (const auto& child : node.children) ForEach(*child, visit);
}

}  // namespace trainwreck::formula
