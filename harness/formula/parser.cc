#include "harness/formula/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "harness/formula/token.h"
#include "harness/text/nearest.h"

namespace trainwreck::formula {
namespace {

using NodePtr = std::unique_ptr<Node>;  // null: an error has been noted

constexpr double kMaxStepBound = 1e9;

const std::vector<std::string>& Keywords() {
  static const std::vector<std::string> keywords = {
      "and",    "or",    "implies",  "not",        "always", "never",
      "at_end", "until", "precedes", "eventually", "once",   "historically"};
  return keywords;
}

bool IsKeyword(std::string_view name) {
  return std::find(Keywords().begin(), Keywords().end(), name) != Keywords().end();
}

std::optional<Kind> PrefixOperator(const Token& token) {
  if (token.IsName("not")) return Kind::kNot;
  if (token.IsName("always")) return Kind::kAlways;
  if (token.IsName("eventually")) return Kind::kEventually;
  if (token.IsName("never")) return Kind::kNever;
  if (token.IsName("at_end")) return Kind::kAtEnd;
  if (token.IsName("once")) return Kind::kOnce;
  if (token.IsName("historically")) return Kind::kHistorically;
  return std::nullopt;
}

std::optional<CompareOp> Comparison(const Token& token) {
  if (token.Is("<")) return CompareOp::kLess;
  if (token.Is("<=")) return CompareOp::kLessEqual;
  if (token.Is(">")) return CompareOp::kGreater;
  if (token.Is(">=")) return CompareOp::kGreaterEqual;
  if (token.Is("==")) return CompareOp::kEqual;
  if (token.Is("!=")) return CompareOp::kNotEqual;
  return std::nullopt;
}

// control.mean(loss[-20:]): the arm goes to every signal and event inside that has none.
void GiveArm(Node& node, const std::string& arm, std::size_t begin) {
  if ((node.kind == Kind::kSignal || node.kind == Kind::kEvent) && node.arm.empty()) {
    node.arm = arm;
    node.arm_begin = begin;
  }
  for (NodePtr& child : node.children) GiveArm(*child, arm, begin);
}

// What other languages call a function of ours.
constexpr std::pair<std::string_view, const char*> kOtherNames[] = {
    {"isnan", "nonfinite"}, {"isinf", "nonfinite"}, {"isfinite", "not nonfinite"},
    {"avg", "mean"},        {"average", "mean"},    {"maximum", "max"},
    {"minimum", "min"}};

// Recursive descent. The first error ends it: what follows one is mostly its echo.
class Parser {
 public:
  Parser(std::string_view text, std::vector<Token> tokens)
      : text_(text), tokens_(std::move(tokens)) {}

  ParsedTree Run() {
    NodePtr root = Implication();
    if (root != nullptr && Now().kind != TokenKind::kEnd) {
      Unexpected("the end of the formula or 'and', 'or', 'implies'");
    }
    if (root != nullptr) root = AsFormula(std::move(root));
    if (!errors_.empty()) root = nullptr;
    return {std::move(root), std::move(errors_)};
  }

 private:
  const Token& Now() const { return tokens_[at_]; }
  const Token& Ahead(std::size_t count) const {
    return tokens_[std::min(at_ + count, tokens_.size() - 1)];
  }
  void Advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool Take(std::string_view symbol) {
    if (!Now().Is(symbol)) return false;
    Advance();
    return true;
  }

  NodePtr Fail(std::size_t begin, std::size_t end, std::string message, std::string hint = "") {
    if (errors_.empty()) errors_.push_back({begin, end, std::move(message), std::move(hint)});
    return nullptr;
  }

  NodePtr Unexpected(const std::string& expected, bool may_be_keyword = true) {
    const Token& token = Now();
    if (token.kind == TokenKind::kEnd) {
      return Fail(token.begin, token.end, "the formula ends where " + expected + " is expected");
    }
    const std::string shown(text_.substr(token.begin, token.end - token.begin));
    std::string hint;
    if (token.Is("=")) {
      hint = Ahead(1).Is("<") ? "write <=" : "write == to compare";
    }
    if (token.Is(".")) hint = "functions stand before their signal: mean(loss[-5:])";
    if (token.kind == TokenKind::kName && may_be_keyword) {
      const std::string nearest = NearestName(token.text, Keywords());
      if (!nearest.empty() && nearest != token.text) hint = "did you mean '" + nearest + "'?";
      // "eventualy loss": the word before is the one that was mistyped.
      const Token& before = tokens_[at_ == 0 ? 0 : at_ - 1];
      if (hint.empty() && at_ > 0 && before.kind == TokenKind::kName) {
        const std::string meant = NearestName(before.text, Keywords());
        if (!meant.empty() && meant != before.text) {
          hint = "for '" + std::string(before.text) + "', did you mean '" + meant + "'?";
        }
      }
    }
    return Fail(token.begin, token.end, fmt::format("'{}' where {} is expected", shown, expected),
                hint);
  }

  bool Expect(std::string_view symbol) {
    if (Take(symbol)) return true;
    Unexpected("'" + std::string(symbol) + "'");
    return false;
  }

  // Finishes a node whose children are in place.
  NodePtr Close(NodePtr node, std::size_t begin) {
    node->begin = begin;
    node->end = at_ > 0 ? tokens_[at_ - 1].end : begin;
    for (const NodePtr& child : node->children) {
      node->depth = std::max(node->depth, child->depth + 1);
    }
    if (node->depth > kMaxDepth) return TooDeep(begin);
    return node;
  }

  NodePtr TooDeep(std::size_t begin) {
    return Fail(begin, std::min(begin + 1, text_.size()),
                fmt::format("nested more than {} deep", kMaxDepth), "make it several checks");
  }

  NodePtr Make(Kind kind, std::size_t begin, NodePtr first, NodePtr second = nullptr) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->children.push_back(std::move(first));
    if (second != nullptr) node->children.push_back(std::move(second));
    return Close(std::move(node), begin);
  }

  // A name alone is an event; any other expression needs a comparison.
  NodePtr AsFormula(NodePtr node) {
    if (node == nullptr || !IsExpression(node->kind)) return node;
    if (node->kind == Kind::kSignal && !node->glob && !node->rank && !node->slice.given) {
      node->kind = Kind::kEvent;
      return node;
    }
    return Fail(node->begin, node->end, "a number, where something true or false is expected",
                "compare it: < <= > >= == !=");
  }

  NodePtr AsExpression(NodePtr node) {
    if (node == nullptr || IsExpression(node->kind)) return node;
    return Fail(node->begin, node->end, "true or false, where a number is expected");
  }

  NodePtr Implication() {
    const std::size_t begin = Now().begin;
    NodePtr left = Chain(Kind::kOr);
    if (left == nullptr || !Now().IsName("implies")) return left;
    left = AsFormula(std::move(left));
    Advance();
    if (left == nullptr || !Enter()) return nullptr;
    NodePtr right = AsFormula(Implication());
    Leave();
    if (right == nullptr) return nullptr;
    return Make(Kind::kImplies, begin, std::move(left), std::move(right));
  }

  // One node however long the chain, so that its depth is that of its parts.
  NodePtr Chain(Kind kind) {
    const std::string_view word = kind == Kind::kOr ? "or" : "and";
    const std::size_t begin = Now().begin;
    auto next = [&] { return kind == Kind::kOr ? Chain(Kind::kAnd) : BinaryTemporal(); };
    NodePtr first = next();
    if (first == nullptr || !Now().IsName(word)) return first;
    auto node = std::make_unique<Node>();
    node->kind = kind;
    first = AsFormula(std::move(first));
    if (first == nullptr) return nullptr;
    node->children.push_back(std::move(first));
    while (Now().IsName(word)) {
      Advance();
      NodePtr part = AsFormula(next());
      if (part == nullptr) return nullptr;
      node->children.push_back(std::move(part));
    }
    return Close(std::move(node), begin);
  }

  NodePtr BinaryTemporal() {
    const std::size_t begin = Now().begin;
    NodePtr left = Unary();
    if (left == nullptr || !(Now().IsName("until") || Now().IsName("precedes"))) return left;
    const Kind kind = Now().IsName("until") ? Kind::kUntil : Kind::kPrecedes;
    left = AsFormula(std::move(left));
    if (left == nullptr) return nullptr;
    Advance();
    Window window;
    if (Now().Is("[") && !ParseWindow(window)) return nullptr;
    NodePtr right = AsFormula(Unary());
    if (right == nullptr) return nullptr;
    if (Now().IsName("until") || Now().IsName("precedes")) {
      return Fail(Now().begin, Now().end,
                  "'" + std::string(Now().text) + "' after another one does not say which is first",
                  "use parentheses");
    }
    NodePtr node = Make(kind, begin, std::move(left), std::move(right));
    if (node != nullptr) node->window = window;
    return node;
  }

  NodePtr Unary() {
    const std::optional<Kind> kind = PrefixOperator(Now());
    if (!kind) return Compare();
    const std::size_t begin = Now().begin;
    Advance();
    Window window;
    if (*kind != Kind::kNot && Now().Is("[") && !ParseWindow(window)) return nullptr;
    if (!Enter()) return nullptr;
    NodePtr operand = AsFormula(Unary());
    Leave();
    if (operand == nullptr) return nullptr;
    NodePtr node = Make(*kind, begin, std::move(operand));
    if (node != nullptr) node->window = window;
    return node;
  }

  NodePtr Compare() {
    const std::size_t begin = Now().begin;
    NodePtr left = Sum();
    if (left == nullptr) return nullptr;
    const std::optional<CompareOp> op = Comparison(Now());
    if (!op) {
      if (Now().Is("=")) return Unexpected("a comparison");
      return left;
    }
    left = AsExpression(std::move(left));
    if (left == nullptr) return nullptr;
    Advance();
    NodePtr right = AsExpression(Sum());
    if (right == nullptr) return nullptr;
    if (Comparison(Now())) {
      return Fail(Now().begin, Now().end, "comparisons do not chain", "write: a < b and b < c");
    }
    NodePtr node = Make(Kind::kCompare, begin, std::move(left), std::move(right));
    if (node != nullptr) node->op = *op;
    return node;
  }

  NodePtr Sum() {
    const std::size_t begin = Now().begin;
    NodePtr left = Product();
    while (left != nullptr && (Now().Is("+") || Now().Is("-"))) {
      const Kind kind = Now().Is("+") ? Kind::kAdd : Kind::kSubtract;
      left = Arithmetic(kind, begin, std::move(left), &Parser::Product);
    }
    return left;
  }

  NodePtr Product() {
    const std::size_t begin = Now().begin;
    NodePtr left = Sign();
    while (left != nullptr && (Now().Is("*") || Now().Is("/"))) {
      const Kind kind = Now().Is("*") ? Kind::kMultiply : Kind::kDivide;
      left = Arithmetic(kind, begin, std::move(left), &Parser::Sign);
    }
    return left;
  }

  NodePtr Arithmetic(Kind kind, std::size_t begin, NodePtr left, NodePtr (Parser::*next)()) {
    left = AsExpression(std::move(left));
    Advance();
    if (left == nullptr) return nullptr;
    NodePtr right = AsExpression((this->*next)());
    if (right == nullptr) return nullptr;
    return Make(kind, begin, std::move(left), std::move(right));
  }

  NodePtr Sign() {
    if (!Now().Is("-")) return Primary();
    const std::size_t begin = Now().begin;
    Advance();
    if (!Enter()) return nullptr;
    NodePtr operand = AsExpression(Sign());
    Leave();
    if (operand == nullptr) return nullptr;
    if (operand->kind == Kind::kNumber) {
      operand->number = -operand->number;
      operand->begin = begin;
      return operand;
    }
    return Make(Kind::kNegate, begin, std::move(operand));
  }

  NodePtr Primary() {
    const Token token = Now();
    if (token.Is("(")) {
      Advance();
      if (!Enter()) return nullptr;
      NodePtr inside = Implication();
      Leave();
      if (inside == nullptr || !Expect(")")) return nullptr;
      return inside;
    }
    if (token.kind == TokenKind::kNumber) {
      Advance();
      auto node = std::make_unique<Node>();
      node->kind = Kind::kNumber;
      node->number = token.number;
      return Close(std::move(node), token.begin);
    }
    if (token.kind == TokenKind::kDuration) {
      return Fail(token.begin, token.end, "seconds stand in windows only", "eventually[:5s] ...");
    }
    if (token.kind != TokenKind::kName || IsKeyword(token.text)) {
      return Unexpected("a signal, an event, a function or '('");
    }
    std::string arm;
    if (Ahead(1).Is(".")) {
      arm = std::string(token.text);
      Advance();
      Advance();
      if (Now().kind != TokenKind::kName || IsKeyword(Now().text)) {
        return Unexpected("a signal, an event or a function of '" + arm + "'");
      }
    }
    NodePtr node = Ahead(1).Is("(") ? Call(token.begin) : Signal(token.begin);
    if (node != nullptr && !arm.empty()) GiveArm(*node, arm, token.begin);
    return node;
  }

  NodePtr Signal(std::size_t begin) {
    auto node = std::make_unique<Node>();
    node->kind = Kind::kSignal;
    node->name = std::string(Now().text);
    Advance();
    if (Now().kind == TokenKind::kGlob) {
      if (Now().text.empty()) {
        return Fail(Now().begin, Now().end, "an empty module pattern", "{*} is every module");
      }
      node->glob = std::string(Now().text);
      Advance();
    }
    if (Take("@")) {
      std::optional<int> rank;
      if (!Integer(rank, "a rank")) return nullptr;
      node->rank = rank;
    }
    if (Now().Is("[") && !ParseSlice(node->slice)) return nullptr;
    return Close(std::move(node), begin);
  }

  // recipe(optimizer.lr)
  NodePtr RecipeKey(std::size_t begin) {
    Advance();
    Advance();
    auto node = std::make_unique<Node>();
    node->kind = Kind::kRecipe;
    do {
      if (Now().kind != TokenKind::kName) {
        return Unexpected("a key of the recipe, such as optimizer.lr", /*may_be_keyword=*/false);
      }
      node->name += (node->name.empty() ? "" : ".") + std::string(Now().text);
      Advance();
    } while (Take("."));
    if (!Expect(")")) return nullptr;
    return Close(std::move(node), begin);
  }

  NodePtr Call(std::size_t begin) {
    const Token name = Now();
    const FunctionInfo* function = FindFunction(name.text);
    if (function == nullptr) return EventCall(begin);
    if (function->kind == Kind::kRecipe) return RecipeKey(begin);
    Advance();
    Advance();
    auto node = std::make_unique<Node>();
    node->kind = function->kind;
    node->aggregate = function->aggregate;
    node->detector = function->detector;
    const bool wants_formula = function->kind >= Kind::kHolds;
    if (!Enter()) return nullptr;
    while (!Now().Is(")")) {
      if (!node->children.empty() || !node->parameters.empty()) {
        if (!Take(",")) return Unexpected("',' or ')'");
      }
      if (Now().kind == TokenKind::kName && Ahead(1).Is("=")) {
        if (!ParseParameter(*function, *node)) return nullptr;
        continue;
      }
      const std::size_t argument = Now().begin;
      NodePtr child = Implication();
      if (child == nullptr) return nullptr;
      if (static_cast<int>(node->children.size()) == function->arguments) {
        return Fail(argument, child->end, TakesWhat(*function));
      }
      child = wants_formula ? AsFormula(std::move(child)) : AsExpression(std::move(child));
      if (child == nullptr) return nullptr;
      node->children.push_back(std::move(child));
    }
    Leave();
    Advance();
    bool complete = static_cast<int>(node->children.size()) == function->arguments;
    for (std::string_view key : function->parameters) {
      complete = complete && node->parameters.contains(std::string(key));
    }
    if (!complete) return Fail(name.begin, name.end, TakesWhat(*function));
    return Close(std::move(node), begin);
  }

  static std::string TakesWhat(const FunctionInfo& function) {
    const bool formula = function.kind >= Kind::kHolds;
    std::string what = formula                             ? "a formula"
                       : function.kind == Kind::kAggregate ? "a slice of a signal"
                       : function.kind == Kind::kOverlap   ? "two slices of signals"
                                                           : "a signal";
    constexpr Kind kOfExpressions[] = {Kind::kSpread, Kind::kTotal, Kind::kAbs,
                                       Kind::kLog,    Kind::kCos,   Kind::kSqrt};
    if (std::ranges::count(kOfExpressions, function.kind) > 0) what = "an expression";
    if (function.arguments == 0) what = "nothing";
    for (std::string_view key : function.parameters) what += fmt::format(", {}=NUMBER", key);
    return fmt::format("{} takes {}", function.name, what);
  }

  bool ParseParameter(const FunctionInfo& function, Node& node) {
    const Token key = Now();
    const auto& known = function.parameters;
    if (std::find(known.begin(), known.end(), key.text) == known.end()) {
      const std::string nearest =
          NearestName(key.text, std::vector<std::string>(known.begin(), known.end()));
      Fail(key.begin, key.end, TakesWhat(function) + ", not '" + std::string(key.text) + "'",
           nearest.empty() ? "" : "did you mean '" + nearest + "'?");
      return false;
    }
    Advance();
    Advance();
    const bool negative = Take("-");
    if (Now().kind != TokenKind::kNumber) {
      Unexpected("a number");
      return false;
    }
    const Parameter parameter{negative ? -Now().number : Now().number, key.begin, Now().end};
    Advance();
    if (!node.parameters.emplace(std::string(key.text), parameter).second) {
      Fail(key.begin, key.end, "'" + std::string(key.text) + "' is given twice");
      return false;
    }
    return true;
  }

  // stalled(waiting_rank=0), event(NAME, key=value), fired(ID).
  NodePtr EventCall(std::size_t begin) {
    const Token name = Now();
    auto node = std::make_unique<Node>();
    node->kind = Kind::kEvent;
    node->has_call = true;
    node->name = std::string(name.text);
    Advance();
    Advance();
    bool first = true;
    if (name.text == "event") {
      if (Now().kind != TokenKind::kName || IsKeyword(Now().text) || Ahead(1).Is("=")) {
        return Unexpected("the name of an event");
      }
      node->name = std::string(Now().text);
      Advance();
      first = false;
    } else if (name.text == "fired" && !Ahead(1).Is("=") &&
               (Now().kind == TokenKind::kName || Now().kind == TokenKind::kString)) {
      node->fault = std::string(Now().text);
      Advance();
      first = false;
    }
    while (!Now().Is(")")) {
      if (!first && !Take(",")) return Unexpected("',' or ')'");
      first = false;
      if (Now().kind != TokenKind::kName || !Ahead(1).Is("=")) return NoFilter(name);
      Filter filter;
      filter.begin = Now().begin;
      filter.key = std::string(Now().text);
      Advance();
      Advance();
      if (!FilterValue(filter)) return nullptr;
      node->filters.push_back(std::move(filter));
    }
    Advance();
    return Close(std::move(node), begin);
  }

  // Something else than key=value: most likely a function's name was mistyped.
  NodePtr NoFilter(const Token& name) {
    if (Now().kind == TokenKind::kEnd) return Unexpected("')'");
    std::string nearest = NearestName(name.text, FunctionNames());
    for (const auto& [theirs, ours] : kOtherNames) {
      if (name.text == theirs) nearest = ours;
    }
    return Fail(name.begin, name.end, fmt::format("no function is called '{}'", name.text),
                nearest.empty() ? "events take key=value only" : "did you mean '" + nearest + "'?");
  }

  bool FilterValue(Filter& filter) {
    const bool negative = Take("-");
    const Token& value = Now();
    if (value.kind == TokenKind::kNumber) {
      filter.is_number = true;
      filter.number = negative ? -value.number : value.number;
    } else if (!negative && (value.kind == TokenKind::kName || value.kind == TokenKind::kString)) {
      filter.text = std::string(value.text);
    } else {
      Unexpected("a number, a name or a string");
      return false;
    }
    filter.end = value.end;
    Advance();
    return true;
  }

  bool ParseWindow(Window& window) {
    window.given = true;
    window.begin = Now().begin;
    Advance();
    bool steps = false;
    auto bound = [&](std::optional<double>& value) {
      const std::size_t begin = Now().begin;
      if (Take("-")) {
        Fail(begin, Now().end, "a window counts from where it is read, never from the end",
             "use a slice: max(loss[-20:]) < 3, or at_end");
        return false;
      }
      if (Now().kind == TokenKind::kDuration) {
        window.in_seconds = true;
      } else if (Now().kind == TokenKind::kNumber) {
        if (Now().number != std::floor(Now().number) || Now().number > kMaxStepBound) {
          Fail(Now().begin, Now().end, "steps are whole numbers", "write 0.5s for seconds");
          return false;
        }
        steps = steps || Now().number != 0;  // 0 is the same in both units
      } else {
        return true;
      }
      value = Now().number;
      Advance();
      return true;
    };
    if (!bound(window.from)) return false;
    if (Now().Is("]")) {
      Fail(window.begin, Now().end, "a window has two ends", "[from:to], [from:] or [:to]");
      return false;
    }
    if (!Expect(":") || !bound(window.to) || !Expect("]")) return false;
    window.end = tokens_[at_ - 1].end;
    if (window.in_seconds && steps) {
      Fail(window.begin, window.end, "a window in both steps and seconds");
      return false;
    }
    return true;
  }

  bool ParseSlice(Slice& slice) {
    slice.given = true;
    slice.begin = Now().begin;
    Advance();
    if (!Now().Is(":") && !Integer(slice.from, "a step")) return false;
    if (slice.from && Now().Is("]")) {
      slice.is_index = true;
    } else {
      if (!Expect(":")) return false;
      if (!Now().Is("]") && !Integer(slice.to, "a step or ']'")) return false;
    }
    if (!Expect("]")) return false;
    slice.end = tokens_[at_ - 1].end;
    return true;
  }

  bool Integer(std::optional<int>& value, const std::string& what) {
    const bool negative = Take("-");
    if (Now().kind == TokenKind::kDuration) {
      Fail(Now().begin, Now().end, "slices count steps, not seconds");
      return false;
    }
    if (Now().kind != TokenKind::kNumber) {
      Unexpected(what, /*may_be_keyword=*/false);
      return false;
    }
    if (Now().number != std::floor(Now().number) || Now().number > kMaxStepBound) {
      Fail(Now().begin, Now().end, "a whole number must stand here");
      return false;
    }
    value = static_cast<int>(negative ? -Now().number : Now().number);
    Advance();
    return true;
  }

  // Bounds the recursion before any node is made: "((((" makes none.
  bool Enter() {
    if (++depth_ <= kMaxDepth) return true;
    TooDeep(Now().begin);
    return false;
  }
  void Leave() { --depth_; }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<FormulaError> errors_;
};

}  // namespace

ParsedTree ParseTree(std::string_view text) {
  if (text.size() > kMaxFormulaBytes) {
    return {nullptr,
            {{0, text.size(),
              fmt::format("a formula of {} bytes; at most {}", text.size(), kMaxFormulaBytes),
              "make it several checks"}}};
  }
  Tokens tokens = Tokenize(text);
  if (!tokens.errors.empty()) return {nullptr, std::move(tokens.errors)};
  if (tokens.tokens.size() == 1) {
    return {nullptr, {{0, text.size(), "the formula is empty", ""}}};
  }
  return Parser(text, std::move(tokens.tokens)).Run();
}

}  // namespace trainwreck::formula
