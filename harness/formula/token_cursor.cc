#include "harness/formula/token_cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "harness/formula/parser.h"
#include "harness/text/nearest.h"

namespace trainwreck::formula {
namespace {

const std::vector<std::string>& Keywords() {
  static const std::vector<std::string> keywords = {
      "and",    "or",    "implies",  "not",        "always", "never",
      "at_end", "until", "precedes", "eventually", "once",   "historically"};
  return keywords;
}

}  // namespace

bool IsKeyword(std::string_view name) {
  return std::find(Keywords().begin(), Keywords().end(), name) != Keywords().end();
}

TokenCursor::TokenCursor(std::string_view text, std::vector<Token> tokens)
    : text_(text), tokens_(std::move(tokens)) {}

const Token& TokenCursor::Ahead(std::size_t count) const {
  return tokens_[std::min(at_ + count, tokens_.size() - 1)];
}

void TokenCursor::Advance() {
  if (at_ + 1 < tokens_.size()) ++at_;
}

bool TokenCursor::Take(std::string_view symbol) {
  if (!Now().Is(symbol)) return false;
  Advance();
  return true;
}

NodePtr TokenCursor::Fail(std::size_t begin, std::size_t end, std::string message,
                          std::string hint) {
  if (errors_.empty()) errors_.push_back({begin, end, std::move(message), std::move(hint)});
  return nullptr;
}

NodePtr TokenCursor::Unexpected(const std::string& expected, bool may_be_keyword) {
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
    const Token& before = Before();
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

bool TokenCursor::Expect(std::string_view symbol) {
  if (Take(symbol)) return true;
  Unexpected("'" + std::string(symbol) + "'");
  return false;
}

NodePtr TokenCursor::Close(NodePtr node, std::size_t begin) {
  node->begin = begin;
  node->end = at_ > 0 ? tokens_[at_ - 1].end : begin;
  for (const NodePtr& child : node->children) {
    node->depth = std::max(node->depth, child->depth + 1);
  }
  if (node->depth > kMaxDepth) return TooDeep(begin);
  return node;
}

NodePtr TokenCursor::TooDeep(std::size_t begin) {
  return Fail(begin, std::min(begin + 1, text_.size()),
              fmt::format("nested more than {} deep", kMaxDepth), "make it several checks");
}

NodePtr TokenCursor::Make(Kind kind, std::size_t begin, NodePtr first, NodePtr second) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->children.push_back(std::move(first));
  if (second != nullptr) node->children.push_back(std::move(second));
  return Close(std::move(node), begin);
}

bool TokenCursor::Enter() {
  if (++depth_ <= kMaxDepth) return true;
  TooDeep(Now().begin);
  return false;
}

}  // namespace trainwreck::formula
