// Rows of text in columns that line up; the last column is as long as it is.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace trainwreck {

// The first row is the header: it is printed after `# `, so that programs can leave it out.
void PrintTable(std::ostream& out, const std::vector<std::vector<std::string>>& rows);

}  // namespace trainwreck
