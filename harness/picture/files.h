// pictures.jsonl, beside verdicts.json: the pictures of the same verdicts in the same order, a line
// each, so that report.html can be made again.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

inline constexpr const char* kPicturesFile = "pictures.jsonl";

// The text of the file.
std::string PicturesText(const std::vector<Verdict>& verdicts);

// Gives each verdict its picture, as far as the file has one of its case. Whether it could be read.
bool ReadPictures(const std::string& path, std::vector<Verdict>& verdicts);

}  // namespace trainwreck
