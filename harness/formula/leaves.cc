#include "harness/formula/leaves.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "harness/text/nearest.h"

namespace trainwreck::formula {
namespace {

constexpr double kMaxStepBound = 1e9;

// What other languages call a function of ours.
constexpr std::pair<std::string_view, const char*> kOtherNames[] = {
    {"isnan", "nonfinite"}, {"isinf", "nonfinite"}, {"isfinite", "not nonfinite"},
    {"avg", "mean"},        {"average", "mean"},    {"maximum", "max"},
    {"minimum", "min"}};

bool ParseInteger(TokenCursor& at, std::optional<int>& value, const std::string& what) {
  const bool negative = at.Take("-");
  if (at.Now().kind == TokenKind::kDuration) {
    at.Fail(at.Now().begin, at.Now().end, "slices count steps, not seconds");
    return false;
  }
  if (at.Now().kind != TokenKind::kNumber) {
    at.Unexpected(what, /*may_be_keyword=*/false);
    return false;
  }
  if (at.Now().number != std::floor(at.Now().number) || at.Now().number > kMaxStepBound) {
    at.Fail(at.Now().begin, at.Now().end, "a whole number must stand here");
    return false;
  }
  value = static_cast<int>(negative ? -at.Now().number : at.Now().number);
  at.Advance();
  return true;
}

bool ParseSlice(TokenCursor& at, Slice& slice) {
  slice.given = true;
  slice.begin = at.Now().begin;
  at.Advance();
  if (!at.Now().Is(":") && !ParseInteger(at, slice.from, "a step")) return false;
  if (slice.from && at.Now().Is("]")) {
    slice.is_index = true;
  } else {
    if (!at.Expect(":")) return false;
    if (!at.Now().Is("]") && !ParseInteger(at, slice.to, "a step or ']'")) return false;
  }
  if (!at.Expect("]")) return false;
  slice.end = at.Before().end;
  return true;
}

// Something else than key=value: most likely a function's name was mistyped.
NodePtr NoFilter(TokenCursor& at, const Token& name) {
  if (at.Now().kind == TokenKind::kEnd) return at.Unexpected("')'");
  std::string nearest = NearestName(name.text, FunctionNames());
  for (const auto& [theirs, ours] : kOtherNames) {
    if (name.text == theirs) nearest = ours;
  }
  return at.Fail(name.begin, name.end, fmt::format("no function is called '{}'", name.text),
                 nearest.empty() ? "events take key=value and key<=number only"
                                 : "did you mean '" + nearest + "'?");
}

std::optional<CompareOp> FilterComparison(const Token& token) {
  if (token.Is("=")) return CompareOp::kEqual;
  const std::optional<CompareOp> op = Comparison(token);
  return op && !IsEquality(*op) ? op : std::nullopt;
}

bool ParseFilterValue(TokenCursor& at, Filter& filter) {
  const bool negative = at.Take("-");
  const Token& value = at.Now();
  if (filter.op != CompareOp::kEqual && value.kind != TokenKind::kNumber) {
    at.Unexpected("a number");
    return false;
  }
  if (value.kind == TokenKind::kNumber) {
    filter.is_number = true;
    filter.number = negative ? -value.number : value.number;
  } else if (!negative && (value.kind == TokenKind::kName || value.kind == TokenKind::kString)) {
    filter.text = std::string(value.text);
  } else {
    at.Unexpected("a number, a name or a string");
    return false;
  }
  filter.end = value.end;
  at.Advance();
  return true;
}

}  // namespace

std::optional<CompareOp> Comparison(const Token& token) {
  if (token.Is("<")) return CompareOp::kLess;
  if (token.Is("<=")) return CompareOp::kLessEqual;
  if (token.Is(">")) return CompareOp::kGreater;
  if (token.Is(">=")) return CompareOp::kGreaterEqual;
  if (token.Is("==")) return CompareOp::kEqual;
  if (token.Is("!=")) return CompareOp::kNotEqual;
  return std::nullopt;
}

NodePtr ParseSignal(TokenCursor& at, std::size_t begin) {
  auto node = std::make_unique<Node>();
  node->kind = Kind::kSignal;
  node->name = std::string(at.Now().text);
  at.Advance();
  if (at.Now().kind == TokenKind::kGlob) {
    if (at.Now().text.empty()) {
      return at.Fail(at.Now().begin, at.Now().end, "an empty module pattern",
                     "{*} is every module");
    }
    node->glob = std::string(at.Now().text);
    at.Advance();
  }
  if (at.Take("@")) {
    std::optional<int> rank;
    if (!ParseInteger(at, rank, "a rank")) return nullptr;
    node->rank = rank;
  }
  if (at.Now().Is("[") && !ParseSlice(at, node->slice)) return nullptr;
  return at.Close(std::move(node), begin);
}

NodePtr ParseRecipeKey(TokenCursor& at, std::size_t begin) {
  at.Advance();
  at.Advance();
  auto node = std::make_unique<Node>();
  node->kind = Kind::kRecipe;
  do {
    if (at.Now().kind != TokenKind::kName) {
      return at.Unexpected("a key of the recipe, such as optimizer.lr", /*may_be_keyword=*/false);
    }
    node->name += (node->name.empty() ? "" : ".") + std::string(at.Now().text);
    at.Advance();
  } while (at.Take("."));
  if (!at.Expect(")")) return nullptr;
  return at.Close(std::move(node), begin);
}

NodePtr ParseEventCall(TokenCursor& at, std::size_t begin) {
  const Token name = at.Now();
  auto node = std::make_unique<Node>();
  node->kind = Kind::kEvent;
  node->has_call = true;
  node->name = std::string(name.text);
  at.Advance();
  at.Advance();
  bool first = true;
  if (name.text == "event") {
    if (at.Now().kind != TokenKind::kName || IsKeyword(at.Now().text) || at.Ahead(1).Is("=")) {
      return at.Unexpected("the name of an event");
    }
    node->name = std::string(at.Now().text);
    at.Advance();
    first = false;
  } else if (name.text == "fired" && !at.Ahead(1).Is("=") &&
             (at.Now().kind == TokenKind::kName || at.Now().kind == TokenKind::kString)) {
    node->fault = std::string(at.Now().text);
    at.Advance();
    first = false;
  }
  while (!at.Now().Is(")")) {
    if (!first && !at.Take(",")) return at.Unexpected("',' or ')'");
    first = false;
    const std::optional<CompareOp> op = FilterComparison(at.Ahead(1));
    if (at.Now().kind != TokenKind::kName || !op) return NoFilter(at, name);
    Filter filter;
    filter.begin = at.Now().begin;
    filter.key = std::string(at.Now().text);
    filter.op = *op;
    at.Advance();
    at.Advance();
    if (!ParseFilterValue(at, filter)) return nullptr;
    node->filters.push_back(std::move(filter));
  }
  at.Advance();
  return at.Close(std::move(node), begin);
}

bool ParseWindow(TokenCursor& at, Window& window) {
  window.given = true;
  window.begin = at.Now().begin;
  at.Advance();
  bool steps = false;
  auto bound = [&](std::optional<double>& value) {
    const std::size_t begin = at.Now().begin;
    if (at.Take("-")) {
      at.Fail(begin, at.Now().end, "a window counts from where it is read, never from the end",
              "use a slice: max(loss[-20:]) < 3, or at_end");
      return false;
    }
    if (at.Now().kind == TokenKind::kDuration) {
      window.in_seconds = true;
    } else if (at.Now().kind == TokenKind::kNumber) {
      if (at.Now().number != std::floor(at.Now().number) || at.Now().number > kMaxStepBound) {
        at.Fail(at.Now().begin, at.Now().end, "steps are whole numbers", "write 0.5s for seconds");
        return false;
      }
      steps = steps || at.Now().number != 0;  // 0 is the same in both units
    } else {
      return true;
    }
    value = at.Now().number;
    at.Advance();
    return true;
  };
  if (!bound(window.from)) return false;
  if (at.Now().Is("]")) {
    at.Fail(window.begin, at.Now().end, "a window has two ends", "[from:to], [from:] or [:to]");
    return false;
  }
  if (!at.Expect(":") || !bound(window.to) || !at.Expect("]")) return false;
  window.end = at.Before().end;
  if (window.in_seconds && steps) {
    at.Fail(window.begin, window.end, "a window in both steps and seconds");
    return false;
  }
  return true;
}

}  // namespace trainwreck::formula
