// The errors of one scenario, as yaml.h has them.
#include <algorithm>
#include <sstream>
#include <utility>

#include "harness/yaml/yaml.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMaxErrors = 100;  // of one scenario; who has more will come back anyway

}  // namespace

int Errors::AddSource(const std::string& name, const std::string& text) {
  Source source{name, {}};
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    source.lines.push_back(std::move(line));
  }
  sources_.push_back(std::move(source));
  return static_cast<int>(sources_.size()) - 1;
}

int Errors::LineCount(int source) const { return static_cast<int>(sources_[source].lines.size()); }

const std::string& Errors::SourceLine(int source, int line) const {
  static const std::string kNone;
  const std::vector<std::string>& lines = sources_[source].lines;
  if (line < 1 || line > static_cast<int>(lines.size())) return kNone;
  return lines[line - 1];
}

void Errors::Add(const YamlNode& at, std::string message, std::string hint) {
  if (at.kind == YamlNode::Kind::kBad && !found_.empty() && message.rfind("alias", 0) != 0) return;
  Add(at.source, at.position, std::move(message), std::move(hint));
}

void Errors::Add(int source, Position position, std::string message, std::string hint) {
  if (found_.size() > kMaxErrors) return;
  if (found_.size() == kMaxErrors) {
    message = "more errors follow; these come first";
    hint.clear();
    position = {};
  }
  // A file that is taken over twice is two sources, and its mistakes are still told once.
  const auto first = std::find_if(sources_.begin(), sources_.end(), [&](const Source& one) {
    return one.name == sources_[source].name;
  });
  source = static_cast<int>(first - sources_.begin());
  if (!seen_.emplace(source, position.line, position.column, message).second) return;
  found_.push_back({source,
                    {sources_[source].name, position, std::move(message), std::move(hint),
                     SourceLine(source, position.line)}});
}

std::vector<Diagnostic> Errors::Sorted() const {
  std::vector<Found> sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Found& a, const Found& b) {
    const Position& p = a.diagnostic.position;
    const Position& q = b.diagnostic.position;
    return std::tie(a.source, p.line, p.column) < std::tie(b.source, q.line, q.column);
  });
  std::vector<Diagnostic> diagnostics;
  for (Found& found : sorted) diagnostics.push_back(std::move(found.diagnostic));
  return diagnostics;
}

}  // namespace trainwreck
