// Text with placeholders, `--lr={optimizer.lr}`, as arguments, environment values and paths of a
// target are written. `{steps-1}` is a whole number less one. `{{` and `}}` stand for braces.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

class TemplateText {
 public:
  struct Part {
    bool is_placeholder = false;
    std::string text;       // or the name of a placeholder
    int added = 0;          // to the placeholder's number
    std::size_t begin = 0;  // in the source
    std::size_t end = 0;
  };

  TemplateText() = default;
  // Parses the text. `error` gets a message, or stays empty.
  static TemplateText Parse(const std::string& text, std::string& error);

  const std::vector<Part>& parts() const { return parts_; }
  bool Mentions(const std::string& placeholder) const;
  bool empty() const { return parts_.empty(); }
  // Every placeholder must be in `values`, as a whole number where one is added to it.
  std::string Expand(const std::map<std::string, std::string>& values) const;

 private:
  std::vector<Part> parts_;
};

// A recipe's value as a program's argument: 30, 0.001, true, adam, 1,2,3.
std::string ArgumentText(const Json& value);

}  // namespace trainwreck
