// Checks, remedies and decoys that are written at a point of the matrix. They are moved to the
// sections of the scenario, with `when: POINT`, so the rest of the reader knows only one form.
#pragma once

#include <vector>

#include "harness/spec/scenario.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

// The sections that may stand at a point, too.
const std::vector<std::string>& PointSections();

// Changes the tree: everything keeps the place where it was written.
void TakeOutPointParts(YamlNode& root, const std::vector<Point>& points, Errors& errors);

}  // namespace trainwreck
