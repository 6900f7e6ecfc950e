#include "harness/yaml/syntax_errors.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>

namespace trainwreck {
namespace {

// yaml-cpp's words, and what a person may have done to get them.
struct SyntaxHint {
  const char* message;
  const char* hint;
};
constexpr SyntaxHint kSyntaxHints[] = {
    {"illegal map value", "text that contains ': ' has to stand in quotes"},
    {"end of map not found", "check the indentation: keys of one map stand in one column"},
    {"end of sequence not found",
     "check the indentation: the dashes of one list stand in one column"},
    {"end of map flow not found",
     "a '{' lacks its '}', or a ',' is missing; text with brackets or braces has to stand in "
     "quotes"},
    {"end of sequence flow not found",
     "a '[' lacks its ']', or a ',' is missing; text with brackets or braces has to stand in "
     "quotes"},
    {"unknown escape character",
     "in double quotes a backslash begins an escape: write patterns in single quotes"},
    {"alias not found", "text that begins with '*' or '&' has to stand in quotes"},
    {"illegal EOF in scalar", "a quote is not closed"},
    {"unknown token", "text that begins with '@', '`' or '%' has to stand in quotes"},
    {"bad conversion", ""},
};

std::string HintFor(const std::string& message, const std::string& line) {
  if (line.find('\t') != std::string::npos &&
      line.find_first_not_of(" \t") > line.find_first_of('\t')) {
    return "indent with spaces, not with tabs";
  }
  for (const SyntaxHint& entry : kSyntaxHints) {
    if (message.find(entry.message) != std::string::npos) return entry.hint;
  }
  return "";
}

std::size_t IndentOf(const std::string& line) {
  const std::size_t indent = line.find_first_not_of(' ');
  return indent == std::string::npos || line[indent] == '#' ? std::string::npos : indent;
}

// What a line that should be a key with its value was meant to be; empty: it is one.
std::string MeantPair(const std::string& line) {
  const std::size_t begin = IndentOf(line);
  if (begin == std::string::npos || line[begin] == '-') return "";
  const std::string text = line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
  if (text.back() == ':' || text.find(": ") != std::string::npos) return "";
  const std::size_t end = text.find_first_of(" =:");
  if (end == 0 || end == std::string::npos) return "";
  for (const char c : text.substr(0, end)) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '-') return "";
  }
  std::size_t value = text.find_first_not_of(" =:", end);
  if (value == std::string::npos) value = text.size();
  return text.substr(0, end) + ": " + text.substr(value);
}

// A key without its colon shows at the next line's colon only: looks for it above.
std::optional<int> LineWithoutColon(int source, int line, const Errors& errors) {
  const std::size_t indent = IndentOf(errors.SourceLine(source, line));
  for (int above = line - 1; above > 0; --above) {
    const std::string& text = errors.SourceLine(source, above);
    const std::size_t its = IndentOf(text);
    if (its == std::string::npos) continue;
    if (!MeantPair(text).empty()) return above;
    if (its <= indent) return std::nullopt;
  }
  return std::nullopt;
}

// The last line up to `line` that opens a double quote and does not close it.
std::optional<int> LineWithOpenQuote(int source, int line, const Errors& errors) {
  for (; line > 0; --line) {
    const std::string& text = errors.SourceLine(source, line);
    bool is_open = false, is_single = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (is_open && text[i] == '\\') {
        ++i;
      } else if (text[i] == '"' && !is_single) {
        is_open = !is_open;
      } else if (text[i] == '\'' && !is_open) {
        is_single = !is_single;
      }
    }
    if (is_open) return line;
  }
  return std::nullopt;
}

}  // namespace

void AddSyntaxError(const YAML::Exception& error, int source, Errors& errors) {
  const Position noticed{std::max(error.mark.line, 0) + 1, std::max(error.mark.column, 0) + 1, 1};
  const auto starts = [&](const char* words) { return error.msg.find(words) == 0; };
  if (starts("illegal map value") || starts("end of map not found")) {
    if (const auto line = LineWithoutColon(source, noticed.line, errors)) {
      const std::string& text = errors.SourceLine(source, *line);
      const std::size_t begin = text.find_first_not_of(' ');
      errors.Add(source,
                 {*line, static_cast<int>(begin) + 1, static_cast<int>(text.size() - begin)},
                 "not YAML: '" + text.substr(begin) + "' is no key with its value",
                 "a colon and a blank stand between them: " + MeantPair(text));
      return;
    }
  }
  std::string hint = HintFor(error.msg, errors.SourceLine(source, noticed.line));
  if (const auto line = LineWithOpenQuote(source, noticed.line - 1, errors)) {
    hint = "is the quote on line " + std::to_string(*line) + " closed?";
  } else if (starts("end of map not found") && noticed.column > 1 &&
             errors.SourceLine(source, noticed.line).find_first_of("'\"") != std::string::npos) {
    hint = "text goes on behind a quote: put all of it in quotes, or none";
  }
  errors.Add(source, noticed, "not YAML: " + error.msg, hint);
}

}  // namespace trainwreck
