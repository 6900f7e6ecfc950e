#include "harness/report/text.h"

#include <cctype>
#include <cmath>
#include <cstdio>

#include "harness/report/console.h"
#include "harness/text/words.h"

namespace trainwreck {

std::string FormatNumber(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string FormatSeconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, seconds < 10 ? "%.2f" : "%.1f", seconds);
  return text;
}

std::string FailureHeading(const CheckResult& check) {
  std::string place = check.file;
  if (check.position.line > 0) {
    place +=
        ":" + std::to_string(check.position.line) + ":" + std::to_string(check.position.column);
  }
  if (!place.empty()) place += ": ";
  return place + check.failure_class.text() + ": '" + check.check + "' in " + check.arm;
}

std::vector<std::pair<std::string, std::string>> FailureLines(const CheckResult& check) {
  std::vector<std::pair<std::string, std::string>> lines;
  auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) lines.emplace_back(label, text);
  };
  add("formula", check.formula);
  add("claim", check.message);
  add("seen", check.seen);
  if (check.worst_margin) add("margin", FormatMargin(*check.worst_margin, check.unit));
  add("place", check.place);
  add("look at", Join(check.suspects));
  add("evidence", check.evidence);
  add("repeat", check.rerun_command);
  return lines;
}

bool IsForAllReaders(const Note& note) {
  return note.seeds == 0 || (note.kind != ArmKind::kFault && note.kind != ArmKind::kDecoy);
}

std::string NoteLine(const Note& note) {
  std::string line = "note: " + note.arm;
  if (note.seeds > 0) line += " seed " + std::to_string(note.seed);
  if (note.step >= 0) line += ", step " + std::to_string(note.step);
  if (note.seeds > 1) {
    line +=
        " (and " + std::to_string(note.seeds - 1) + " more seed" + (note.seeds > 2 ? "s)" : ")");
  }
  return line + ": " + note.text;
}

std::string UpperCase(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string EscapeMarkdown(const std::string& text) {
  std::string escaped;
  for (char c : CleanText(text)) {
    switch (c) {
      case '\n':
        escaped += ' ';
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '|':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '\\':
      case '#':
        escaped += '\\';
        escaped += c;
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace trainwreck
