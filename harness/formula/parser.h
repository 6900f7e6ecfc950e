// From a formula's text to its syntax tree. Grammar: docs/reference/formulas.md.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/node.h"

namespace trainwreck::formula {

inline constexpr std::size_t kMaxFormulaBytes = 4096;
inline constexpr int kMaxDepth = 64;  // of the syntax tree; bounds every recursion over it

struct ParsedTree {
  std::unique_ptr<Node> root;  // null when there is an error
  std::vector<FormulaError> errors;
};
ParsedTree ParseTree(std::string_view text);

}  // namespace trainwreck::formula
