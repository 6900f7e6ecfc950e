// Pictures of several lines made of block characters, for terminals.
#pragma once

#include <string>
#include <vector>

#include "harness/report/console.h"

namespace trainwreck {

struct ChartOptions {
  int width = 60;  // columns of the picture without its labels
  int height = 4;  // lines
  bool unicode = true;
};

// A curve: a bar for each column, as high as its last value; 'x' at the foot where a value is not
// finite. The lines are equally long.
std::vector<std::string> Chart(const std::vector<double>& values, const SparkScale& scale,
                               const ChartOptions& options);

// The column of a chart with `count` values that shows value `index`; -1: none does.
int ColumnOf(std::size_t index, std::size_t count, int width);

// A bar of at most `width` columns for a share of 0 to 1; shares above that fill it.
std::string Bar(double share, int width, bool unicode);

// `begin` and the text, in lines of at most `width` columns that break at blanks where there are
// some; each line after the first begins with `indent`.
std::string Wrapped(const std::string& begin, const std::string& text, int width,
                    const std::string& indent);

}  // namespace trainwreck
