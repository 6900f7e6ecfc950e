#include "harness/formula/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "harness/formula/leaves.h"
#include "harness/formula/token.h"
#include "harness/formula/token_cursor.h"
#include "harness/text/nearest.h"

namespace trainwreck::formula {
namespace {

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

// control.mean(loss[-20:]): the arm goes to every signal and event inside that has none.
void GiveArm(Node& node, const std::string& arm, std::size_t begin) {
  if ((node.kind == Kind::kSignal || node.kind == Kind::kEvent) && node.arm.empty()) {
    node.arm = arm;
    node.arm_begin = begin;
  }
  for (NodePtr& child : node.children) GiveArm(*child, arm, begin);
}

// Recursive descent. The first error ends it.
class Parser : private TokenCursor {
 public:
  using TokenCursor::TokenCursor;

  ParsedTree Run() {
    NodePtr root = Implication();
    if (root != nullptr && Now().kind != TokenKind::kEnd) {
      Unexpected("the end of the formula or 'and', 'or', 'implies'");
    }
    if (root != nullptr) root = AsFormula(std::move(root));
    if (!errors().empty()) root = nullptr;
    return {std::move(root), errors()};
  }

 private:
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
    if (Now().Is("[") && !ParseWindow(*this, window)) return nullptr;
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
    if (*kind != Kind::kNot && Now().Is("[") && !ParseWindow(*this, window)) return nullptr;
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
    NodePtr node = Ahead(1).Is("(") ? Call(token.begin) : ParseSignal(*this, token.begin);
    if (node != nullptr && !arm.empty()) GiveArm(*node, arm, token.begin);
    return node;
  }

  NodePtr Call(std::size_t begin) {
    const Token name = Now();
    const FunctionInfo* function = FindFunction(name.text);
    if (function == nullptr) return ParseEventCall(*this, begin);
    if (function->kind == Kind::kRecipe) return ParseRecipeKey(*this, begin);
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
    constexpr Kind kOfExpressions[] = {Kind::kSpread, Kind::kTotal, Kind::kSeedSpread, Kind::kAbs,
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
