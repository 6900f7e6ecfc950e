#include "harness/pages/compare_curves.h"

#include <map>
#include <sstream>
#include <utility>

#include "harness/picture/files.h"
#include "harness/protocol/parse_json.h"
#include "harness/text/clean_text.h"
#include "harness/text/files.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

using Pictures = std::map<std::string, std::string>;  // case -> its line

Pictures Load(const std::string& folder, std::vector<std::string>& missing) {
  Pictures pictures;
  const std::string path = folder + "/" + kPicturesFile;
  const auto text = ReadFile(path);
  if (!text) {
    missing.push_back("there is no " + path);
    return pictures;
  }
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const Json picture = TryParseJson(line);
    const auto name = picture.is_object() ? picture.find("case") : picture.end();
    if (name != picture.end() && name->is_string()) pictures[name->get<std::string>()] = line;
  }
  return pictures;
}

Json Parsed(const Pictures& pictures, const std::string& name) {
  const auto found = pictures.find(CleanText(name));
  return found == pictures.end() ? Json() : TryParseJson(found->second);
}

// What both sides draw; the commands and collectives of a side are in its own report.
void AddArms(const Json& picture, const std::string& side, Json& arms) {
  const auto found = picture.find("arms");
  if (found == picture.end() || !found->is_array()) return;
  for (const Json& arm : *found) {
    if (!arm.is_object() || !arm.contains("arm") || !arm["arm"].is_string()) continue;
    Json added = {{"arm", side + ": " + arm["arm"].get<std::string>()},
                  {"kind", side == "A" ? "a" : "b"},
                  {"was", arm.value("kind", Json(""))}};
    for (const char* key : {"runs", "sketches"}) {
      if (arm.contains(key)) added[key] = arm[key];
    }
    if (!added.contains("runs") || !added["runs"].is_array()) added["runs"] = Json::array();
    arms.push_back(std::move(added));
  }
}

Json Overlaid(const std::string& name, const Json& a, const Json& b) {
  Json of_a = Json::array(), of_b = Json::array(), arms = Json::array();
  AddArms(a, "A", of_a);
  AddArms(b, "B", of_b);
  // Both sides of an arm beside each other, in the order of A.
  for (Json& arm : of_a) {
    const std::string other = "B" + arm["arm"].get<std::string>().substr(1);
    arms.push_back(std::move(arm));
    for (Json& its : of_b) {
      if (its.is_object() && its["arm"] == other) arms.push_back(std::exchange(its, Json()));
    }
  }
  for (Json& arm : of_b) {
    if (arm.is_object()) arms.push_back(std::move(arm));
  }
  Json picture = {{"case", CleanText(name)}, {"arms", std::move(arms)}};
  for (const char* key : {"steps", "units", "log"}) {
    if (b.contains(key)) picture[key] = b[key];
  }
  return picture;
}

}  // namespace

CurvesOfSides CurvesOf(const std::vector<std::string>& cases, const std::string& a,
                       const std::string& b, std::size_t room_bytes) {
  CurvesOfSides curves;
  std::vector<std::string> missing;
  const Pictures of_a = Load(a, missing), of_b = Load(b, missing);
  std::size_t bytes = 0, left_out = 0;
  for (const std::string& name : cases) {
    curves.pictures.emplace_back();
    const Json in_a = Parsed(of_a, name), in_b = Parsed(of_b, name);
    if (!in_a.is_object() || !in_b.is_object()) continue;
    Json both = Overlaid(name, in_a, in_b);
    const std::size_t size = both.dump(-1, ' ', true, Json::error_handler_t::replace).size();
    if (bytes + size > room_bytes) {
      ++left_out;
      continue;
    }
    bytes += size;
    curves.pictures.back() = std::move(both);
  }
  if (left_out > 0) {
    missing.push_back("the curves of " + std::to_string(left_out) +
                      (left_out == 1 ? " case have" : " cases have") + " no room here");
  }
  curves.missing = Join(missing, "; ");
  return curves;
}

}  // namespace trainwreck
