#include "harness/picture/files.h"

#include <optional>
#include <sstream>

#include "harness/protocol/parse_json.h"
#include "harness/text/clean_text.h"
#include "harness/text/files.h"

namespace trainwreck {

std::string PicturesText(const std::vector<Verdict>& verdicts) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    text += (verdict.picture.empty() ? "{}" : verdict.picture) + "\n";
  }
  return text;
}

bool ReadPictures(const std::string& path, std::vector<Verdict>& verdicts) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return false;
  std::istringstream lines(*text);
  for (Verdict& verdict : verdicts) {
    std::string line;
    if (!std::getline(lines, line)) return false;
    const Json picture = TryParseJson(line);
    if (!picture.is_object() || !picture.contains("case")) continue;
    if (picture["case"] == Json(CleanText(verdict.case_name))) verdict.picture = line;
  }
  return true;
}

}  // namespace trainwreck
