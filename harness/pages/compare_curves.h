// The curves of both sides of a comparison, laid over each other. Private to this package.
#pragma once

#include <string>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

struct CurvesOfSides {
  std::vector<Json>
      pictures;         // by case, as picture.h has them; null: there is none. An arm "fault"
                        // becomes the arms "A: fault" and "B: fault".
  std::string missing;  // why some are null; may be empty
};

// Of the cases, those named first have first claim to the room. `a` and `b` are the folders that
// hold the sides' pictures.jsonl.
CurvesOfSides CurvesOf(const std::vector<std::string>& cases, const std::string& a,
                       const std::string& b, std::size_t room_bytes);

}  // namespace trainwreck
