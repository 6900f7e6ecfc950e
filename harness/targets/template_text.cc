#include "harness/targets/template_text.h"

#include <re2/re2.h>

#include <algorithm>

namespace trainwreck {
namespace {

// `steps-1` is `steps`, to which -1 is added. A pattern of files keeps its numbers.
TemplateText::Part PlaceholderOf(const std::string& text) {
  static const RE2 kSum(R"(([^:]+?)([+-]\d{1,6}))");
  TemplateText::Part part{.is_placeholder = true, .text = text};
  std::string name;
  if (int added = 0; RE2::FullMatch(text, kSum, &name, &added)) {
    part.text = name;
    part.added = added;
  }
  return part;
}

}  // namespace

TemplateText TemplateText::Parse(const std::string& text, std::string& error) {
  TemplateText result;
  Part plain;
  auto flush = [&] {
    if (!plain.text.empty()) result.parts_.push_back(plain);
    plain = Part();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      plain.text += c;
      ++i;
    } else if (c == '}') {
      error = "a '}' without its '{' (write '}}' for a brace)";
      return result;
    } else if (c == '{') {
      const std::size_t end = text.find('}', i);
      if (end == std::string::npos || end == i + 1) {
        error = "a '{' without a name and its '}' (write '{{' for a brace)";
        return result;
      }
      flush();
      Part placeholder = PlaceholderOf(text.substr(i + 1, end - i - 1));
      placeholder.begin = i;
      placeholder.end = end + 1;
      result.parts_.push_back(placeholder);
      i = end;
    } else {
      plain.text += c;
    }
  }
  flush();
  return result;
}

bool TemplateText::Mentions(const std::string& placeholder) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
    return part.is_placeholder && part.text == placeholder;
  });
}

std::string TemplateText::Expand(const std::map<std::string, std::string>& values) const {
  std::string text;
  for (const Part& part : parts_) {
    if (part.added != 0) {
      text += std::to_string(std::stoll(values.at(part.text)) + part.added);
    } else {
      text += part.is_placeholder ? values.at(part.text) : part.text;
    }
  }
  return text;
}

std::string ArgumentText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& item : value) text += (text.empty() ? "" : ",") + ArgumentText(item);
  return text;
}

}  // namespace trainwreck
