// A user's error with its place, its source line, a caret and the likely fix.
//
//   scenarios/nan/x.yaml:12:5: error: unknown key 'fualt'
//     12 |   hot: {fualt: recipe.high_lr}
//        |         ^~~~~
//     did you mean 'fault'?
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

struct Position {
  int line = 0;  // from 1; 0: the whole file
  int column = 0;
  int length = 1;
};

struct Diagnostic {
  std::string file;
  Position position;
  std::string message;
  std::string hint;         // "did you mean 'fault'?"; may be empty
  std::string source_line;  // as it stands in the file
};

std::string Format(const Diagnostic& diagnostic, bool color = false);

}  // namespace trainwreck
