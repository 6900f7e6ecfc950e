// The parts of a formula with no other formula inside: signals, events and keys of the recipe, and
// the windows and slices that stand in brackets. Each begins at the token where the cursor stands,
// and leaves the cursor behind what it took; null or false: an error has been noted.
#pragma once

#include <cstddef>
#include <optional>

#include "harness/formula/token_cursor.h"

namespace trainwreck::formula {

// <, <=, >, >=, ==, !=
std::optional<CompareOp> Comparison(const Token& token);
// loss, grad_norm{head.*}@1[-5:]. `begin` is where the node begins, at its arm if it has one.
NodePtr ParseSignal(TokenCursor& at, std::size_t begin);
// recipe(optimizer.lr)
NodePtr ParseRecipeKey(TokenCursor& at, std::size_t begin);
// stalled(waiting_rank=0), event(NAME, key=value), fired(ID).
NodePtr ParseEventCall(TokenCursor& at, std::size_t begin);
// [:5], [2:], [0.5s:1s]
bool ParseWindow(TokenCursor& at, Window& window);

}  // namespace trainwreck::formula
