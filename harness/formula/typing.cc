#include "harness/formula/typing.h"

#include <algorithm>
#include <cmath>

namespace trainwreck::formula {
namespace {

enum class Positivity { kNo, kConstant, kLogSignal };

Positivity PositivityOf(const Node& node, const TargetDescription& target) {
  switch (node.kind) {
    case Kind::kNumber:
      return node.number > 0 ? Positivity::kConstant : Positivity::kNo;
    case Kind::kSignal: {
      const SignalInfo* info = target.FindSignal(node.name);
      const bool log = info != nullptr && info->scale == Scale::kLog && !info->exact;
      return log ? Positivity::kLogSignal : Positivity::kNo;
    }
    case Kind::kDistance:
    case Kind::kRounding:
    case Kind::kSeedSpread:
      return Positivity::kLogSignal;
    case Kind::kAggregate:
      if (node.aggregate == Aggregate::kSlope || node.aggregate == Aggregate::kCount) {
        return Positivity::kNo;
      }
      return PositivityOf(node.child(0), target);
    case Kind::kAbs:
    case Kind::kSqrt:
    case Kind::kTotal:
      return PositivityOf(node.child(0), target);
    case Kind::kAdd:
    case Kind::kMultiply:
    case Kind::kDivide: {
      const Positivity left = PositivityOf(node.child(0), target);
      const Positivity right = PositivityOf(node.child(1), target);
      if (left == Positivity::kNo || right == Positivity::kNo) return Positivity::kNo;
      return std::max(left, right);
    }
    default:
      return Positivity::kNo;
  }
}

}  // namespace

bool IsExact(const Node& node, const TargetDescription& target) {
  switch (node.kind) {
    case Kind::kNumber:
      return node.number == std::floor(node.number);
    case Kind::kSignal: {
      const SignalInfo* info = target.FindSignal(node.name);
      return info != nullptr && info->exact;
    }
    case Kind::kOverlap:
      return true;
    case Kind::kAggregate:
      switch (node.aggregate) {
        case Aggregate::kCount:
          return true;
        case Aggregate::kMin:
        case Aggregate::kMax:
        case Aggregate::kFirst:
        case Aggregate::kLast:
        case Aggregate::kSum:
          return IsExact(node.child(0), target);
        default:
          return false;
      }
    case Kind::kStep:
      return true;
    case Kind::kDivide:
    case Kind::kDistance:
    case Kind::kRounding:
    case Kind::kSeedSpread:
    case Kind::kRecipe:
    case Kind::kLog:
    case Kind::kCos:
    case Kind::kSqrt:
      return false;
    default:
      return std::all_of(node.children.begin(), node.children.end(),
                         [&](const auto& child) { return IsExact(*child, target); });
  }
}

bool IsAsRecorded(const Node& node) {
  switch (node.kind) {
    case Kind::kSignal:
      return true;
    case Kind::kAggregate:
      return node.aggregate == Aggregate::kMin || node.aggregate == Aggregate::kMax ||
             node.aggregate == Aggregate::kFirst || node.aggregate == Aggregate::kLast;
    case Kind::kAbs:
    case Kind::kNegate:
    case Kind::kSpread:  // a difference is 0 for equal numbers only
    case Kind::kDistance:
      return IsAsRecorded(node.child(0));
    default:
      return false;
  }
}

bool ComparesInOctaves(const Node& comparison, const TargetDescription& target) {
  if (IsEquality(comparison.op)) return false;
  const Positivity left = PositivityOf(comparison.child(0), target);
  const Positivity right = PositivityOf(comparison.child(1), target);
  if (left == Positivity::kNo || right == Positivity::kNo) return false;
  return left == Positivity::kLogSignal || right == Positivity::kLogSignal;
}

}  // namespace trainwreck::formula
