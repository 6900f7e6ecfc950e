// A badge for a README: "trainwreck | 139 of 142 passed", as a picture (SVG) and as the JSON that
// shields.io draws from an endpoint. The colour repeats what the words say.
#include <cmath>

#include "harness/protocol/json.h"
#include "harness/report/report.h"

namespace trainwreck {
namespace {

constexpr const char* kLabel = "trainwreck";

struct Badge {
  std::string message;
  const char* color = "";  // of shields.io
  const char* rgb = "";    // the same
};

int Count(const std::vector<Verdict>& verdicts, VerdictKind kind) {
  int count = 0;
  for (const Verdict& verdict : verdicts) count += verdict.verdict == kind;
  return count;
}

Badge BadgeOf(const std::vector<Verdict>& verdicts) {
  const int passed = Count(verdicts, VerdictKind::kPass);
  const int failed = Count(verdicts, VerdictKind::kFail);
  const int executed = static_cast<int>(verdicts.size()) - Count(verdicts, VerdictKind::kSkip);
  if (executed == 0) return {"nothing executed", "lightgrey", "#595959"};
  const std::string of = " of " + std::to_string(executed);
  if (failed > 0) return {std::to_string(failed) + of + " failed", "red", "#b3261e"};
  if (passed < executed) {
    return {std::to_string(executed - passed) + of + " undecided", "orange", "#8a5300"};
  }
  return {std::to_string(passed) + " passed", "brightgreen", "#1a6b2f"};
}

// In pixels of an 11 px sans-serif; textLength makes each font keep to it.
int WidthOf(const std::string& text) { return static_cast<int>(std::lround(6.2 * text.size())); }

std::string Rectangle(int x, int width, const char* rgb) {
  return "<rect x=\"" + std::to_string(x) + "\" width=\"" + std::to_string(width) +
         "\" height=\"20\" fill=\"" + rgb + "\"/>\n";
}

std::string Text(int x, const std::string& text) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"14\" textLength=\"" +
         std::to_string(WidthOf(text)) + "\">" + text + "</text>\n";
}

std::string BadgePicture(const std::vector<Verdict>& verdicts, const RunInfo& /*info*/) {
  constexpr int kGap = 6;
  const Badge badge = BadgeOf(verdicts);
  const int left = WidthOf(kLabel) + 2 * kGap, right = WidthOf(badge.message) + 2 * kGap;
  const std::string title = std::string(kLabel) + ": " + badge.message;
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(left + right) +
         "\" height=\"20\" role=\"img\" aria-label=\"" + title + "\">\n<title>" + title +
         "</title>\n" + Rectangle(0, left, "#444444") + Rectangle(left, right, badge.rgb) +
         "<g fill=\"#ffffff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">\n" +
         Text(kGap, kLabel) + Text(left + kGap, badge.message) + "</g>\n</svg>\n";
}

std::string BadgeEndpoint(const std::vector<Verdict>& verdicts, const RunInfo& /*info*/) {
  const Badge badge = BadgeOf(verdicts);
  const Json json = {
      {"schemaVersion", 1}, {"label", kLabel}, {"message", badge.message}, {"color", badge.color}};
  return json.dump(1) + "\n";
}

const ReportRegistration picture(11, {.name = "badge", .text = BadgePicture});
const ReportRegistration endpoint(12, {.name = "shields", .text = BadgeEndpoint});

}  // namespace
}  // namespace trainwreck
