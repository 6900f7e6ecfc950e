// How a sequence is shown in evidence.
#pragma once

#include <algorithm>

#include "trainer/parts.h"

namespace trainwreck {

// The first tokens of a row, four at most.
inline Json FirstTokens(const at::Tensor& row) {
  Json tokens = Json::array();
  for (std::int64_t i = 0; i < std::min<std::int64_t>(row.size(0), 4); ++i) {
    tokens.push_back(row[i].item<std::int64_t>());
  }
  return tokens;
}

}  // namespace trainwreck
