// The words of a formula's text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/formula/formula.h"

namespace trainwreck::formula {

enum class TokenKind {
  kName,
  kNumber,    // 3, 0.5, 1e-3
  kDuration,  // 5s, 0.2s
  kString,    // 'x' or "x", without escapes
  kGlob,      // {head.*}
  kSymbol,    // ( ) [ ] , : . @ + - * / < <= > >= == != =
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view text;  // of a string or glob: what stands inside
  double number = 0;

  bool Is(std::string_view symbol) const { return kind == TokenKind::kSymbol && text == symbol; }
  bool IsName(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// The tokens of `text`, closed by kEnd; or one error. The tokens point into `text`.
struct Tokens {
  std::vector<Token> tokens;
  std::vector<FormulaError> errors;
};
Tokens Tokenize(std::string_view text);

}  // namespace trainwreck::formula
