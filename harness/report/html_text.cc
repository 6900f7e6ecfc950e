#include "harness/report/html_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

constexpr double kHalf[] = {1, 10, 1, 1};  // by Unit
static_assert(std::size(kHalf) == formula::kUnitCount);

constexpr int kMiddle = 60;  // of a drawing 120 wide

int XOf(double margin, formula::Unit unit) {
  return kMiddle + static_cast<int>(std::lround(MarginStrength(margin, unit) * (kMiddle - 2)));
}

}  // namespace

std::string Html(const std::string& text) {
  std::string escaped;
  for (char c : CleanText(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string JsonInScript(const Json& json) {
  std::string text;
  for (char c : json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";  // only texts have one
    } else {
      text += c;
    }
  }
  return text;
}

double MarginStrength(double margin, formula::Unit unit) {
  if (std::isnan(margin)) return 0;
  const double size = 1 - std::exp2(-std::fabs(margin) / kHalf[static_cast<int>(unit)]);
  return margin < 0 ? -size : size;
}

std::string MarginBar(double worst, const std::vector<double>& seeds,
                      const std::optional<double>& least, formula::Unit unit,
                      const std::string& label) {
  const int x = XOf(worst, unit);
  std::string svg = "<svg class=m viewBox=\"0 0 120 12\" role=img aria-label=\"" + Html(label) +
                    "\"><rect class=" + (worst < 0 ? "mn" : "mp") +
                    " x=" + std::to_string(std::min(x, kMiddle)) +
                    " y=3 width=" + std::to_string(std::max(std::abs(x - kMiddle), 1)) +
                    " height=6 /><path class=mz d=\"M60 0v12\"/>";
  if (!seeds.empty()) {
    svg += "<path class=ms d=\"";
    for (double seed : seeds) svg += "M" + std::to_string(XOf(seed, unit)) + " 1v10";
    svg += "\"/>";
  }
  if (least) {
    svg += "<path class=ml d=\"M" + std::to_string(XOf(*least, unit)) + " 0v12\"/>";
  }
  return svg + "</svg>";
}

}  // namespace trainwreck
