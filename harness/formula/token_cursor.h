// Where the parser stands in a formula's tokens, how deep it is in there, and what was wrong with
// them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"
#include "harness/formula/token.h"

namespace trainwreck::formula {

using NodePtr = std::unique_ptr<Node>;  // null: an error has been noted

bool IsKeyword(std::string_view name);

class TokenCursor {
 public:
  // `text` must outlive the cursor; `tokens` are those of Tokenize, without errors.
  TokenCursor(std::string_view text, std::vector<Token> tokens);

  const Token& Now() const { return tokens_[at_]; }
  const Token& Ahead(std::size_t count) const;
  const Token& Before() const { return tokens_[at_ == 0 ? 0 : at_ - 1]; }
  void Advance();
  bool Take(std::string_view symbol);  // goes behind it where it stands here

  // All note an error and return null or false. The first error is kept: what follows one is mostly
  // its echo.
  NodePtr Fail(std::size_t begin, std::size_t end, std::string message, std::string hint = "");
  NodePtr Unexpected(const std::string& expected, bool may_be_keyword = true);
  bool Expect(std::string_view symbol);
  const std::vector<FormulaError>& errors() const { return errors_; }

  // Finishes a node whose children are in place.
  NodePtr Close(NodePtr node, std::size_t begin);
  NodePtr Make(Kind kind, std::size_t begin, NodePtr first, NodePtr second = nullptr);

  // Bounds the recursion before any node is made: "((((" makes none.
  bool Enter();
  void Leave() { --depth_; }

 private:
  NodePtr TooDeep(std::size_t begin);

  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::vector<FormulaError> errors_;
};

}  // namespace trainwreck::formula
