#include "harness/yaml/comments.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

namespace trainwreck {
namespace {

struct Comment {
  int line = 0;  // from 1, as in Position
  int column = 0;
  bool has_line = false;  // nothing else stands on its line
  std::string text;
};

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

// Finds what stands behind '#' outside of scalars. Plain scalars cannot hold " #", so only those
// in quotes and blocks are passed over; the tree says where they begin.
class Scanner {
 public:
  Scanner(const YamlNode& root, const std::string& text) : lines_(LinesOf(text)) { Collect(root); }

  bool Run(std::vector<Comment>& comments, std::string& why) {
    while (line_ < lines_.size()) {
      if (column_ == 0 && !lines_[line_].empty() && lines_[line_][0] == '%') {
        why = "it has a directive, on line " + std::to_string(line_ + 1);
        return false;
      }
      if (!ScanLine(comments, why)) return false;
    }
    return true;
  }

 private:
  void Collect(const YamlNode& node) {
    if (node.IsScalar() && !node.is_plain) {
      starts_.insert({node.position.line - 1, node.position.column - 1});
    }
    for (const YamlNode& key : node.keys) Collect(key);
    for (const YamlNode& item : node.items) Collect(item);
  }

  // From `column_` on; leaves both at where to go on.
  bool ScanLine(std::vector<Comment>& comments, std::string& why) {
    const std::string& line = lines_[line_];
    bool opens_block = false;
    for (; column_ < line.size(); ++column_) {
      const char c = line[column_];
      if (starts_.contains({static_cast<int>(line_), static_cast<int>(column_)})) {
        if (c == '"' || c == '\'') return SkipQuoted(c, why);
        if (c != '|' && c != '>') {
          why = "text that is neither plain nor in quotes, on line " + std::to_string(line_ + 1);
          return false;
        }
        opens_block = true;
      } else if (c == '#' &&
                 (column_ == 0 || line[column_ - 1] == ' ' || line[column_ - 1] == '\t')) {
        const std::size_t first = line.find_first_not_of(" \t");
        std::string text = line.substr(column_);
        text.erase(text.find_last_not_of(" \t") + 1);
        comments.push_back({static_cast<int>(line_) + 1, static_cast<int>(column_) + 1,
                            first == column_, std::move(text)});
        break;
      }
    }
    if (opens_block &&
        line.find_first_of("0123456789", line.find_last_of("|>")) != std::string::npos &&
        line.find('#') == std::string::npos) {
      why = "a block of text says its own indentation, on line " + std::to_string(line_ + 1);
      return false;
    }
    ++line_;
    column_ = 0;
    if (opens_block) SkipBlock(line.find_first_not_of(' '));
    return true;
  }

  bool SkipQuoted(char quote, std::string& why) {
    const std::size_t begin = line_;
    for (++column_; line_ < lines_.size(); ++line_, column_ = 0) {
      const std::string& line = lines_[line_];
      for (; column_ < line.size(); ++column_) {
        if (quote == '"' && line[column_] == '\\') {
          ++column_;
        } else if (line[column_] == quote) {
          ++column_;
          if (quote == '"' || column_ >= line.size() || line[column_] != quote) return true;
        }
      }
    }
    why = "the quote on line " + std::to_string(begin + 1) + " is not closed";
    return false;
  }

  // Over the lines that are indented like the first one, and deeper than the line of its key.
  void SkipBlock(std::size_t outer) {
    std::size_t indent = std::string::npos;
    for (; line_ < lines_.size(); ++line_) {
      const std::size_t first = lines_[line_].find_first_not_of(' ');
      if (first == std::string::npos) continue;
      if (indent == std::string::npos && first > outer) indent = first;
      if (indent == std::string::npos || first < indent) return;
    }
  }

  const std::vector<std::string> lines_;
  std::set<std::pair<int, int>> starts_;  // of scalars in quotes or blocks
  std::size_t line_ = 0;
  std::size_t column_ = 0;
};

struct Entry {
  const YamlNode* parent;
  std::size_t index;
  Position position;
};

void CollectEntries(const YamlNode& node, std::vector<Entry>& entries) {
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    entries.push_back({&node, i, Comments::AnchorOf(node, i).position});
    CollectEntries(node.items[i], entries);
  }
}

void Append(const std::vector<std::string>& from, std::vector<std::string>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// Where `comment` belongs; `entries` are in the order of the text.
void Attach(const Comment& comment, const std::vector<Entry>& entries, Comments& comments) {
  const auto starts_later = [&](const Entry& entry) { return entry.position.line > comment.line; };
  const auto next = std::find_if(entries.begin(), entries.end(), starts_later);
  if (next == entries.begin()) {
    comments.header.push_back(comment.text);
    return;
  }
  if (!comment.has_line) {
    const auto first = std::find_if(entries.begin(), next, [&](const Entry& entry) {
      return entry.position.line == comment.line;
    });
    const Entry& entry = first == next ? *std::prev(next) : *first;
    AttachedComments& its = comments.Of(*entry.parent, entry.index);
    if (its.beside.empty()) {
      its.beside = comment.text;
    } else {
      its.before.push_back(comment.text);
    }
    return;
  }
  if (next != entries.end() && comment.column <= next->position.column) {
    comments.Of(*next->parent, next->index).before.push_back(comment.text);
    return;
  }
  if (next == entries.end() && comment.column == 1) {
    comments.footer.push_back(comment.text);
    return;
  }
  // Indented deeper than what follows: it ends the part above.
  auto last = std::prev(next);
  while (last != entries.begin() && last->position.column > comment.column) --last;
  comments.Of(*last->parent, last->index).after.push_back(comment.text);
}

}  // namespace

Comments::Key Comments::KeyOf(const YamlNode& parent, std::size_t index) {
  const Position& position = AnchorOf(parent, index).position;
  return {position.line, position.column, parent.IsList()};
}

const AttachedComments& Comments::Of(const YamlNode& parent, std::size_t index) const {
  static const AttachedComments kNone;
  const auto found = attached_.find(KeyOf(parent, index));
  return found == attached_.end() ? kNone : found->second;
}

AttachedComments& Comments::Of(const YamlNode& parent, std::size_t index) {
  return attached_[KeyOf(parent, index)];
}

bool Comments::AreBelow(const YamlNode& node) const {
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (!Of(node, i).empty() || AreBelow(node.items[i])) return true;
  }
  return false;
}

void Comments::Detach(const YamlNode& parent, std::size_t index) {
  for (std::size_t i = 0; i < parent.items[index].items.size(); ++i) {
    Detach(parent.items[index], parent.items[index].items.size() - 1 - i);
  }
  const AttachedComments gone = std::exchange(Of(parent, index), {});
  std::vector<std::string> lines = gone.before;
  if (!gone.beside.empty()) lines.push_back(gone.beside);
  Append(gone.after, lines);
  if (lines.empty()) return;
  if (index + 1 < parent.items.size()) {
    std::vector<std::string>& before = Of(parent, index + 1).before;
    before.insert(before.begin(), lines.begin(), lines.end());
  } else if (index > 0) {
    Append(lines, Of(parent, index - 1).after);
  } else {
    Append(lines, footer);
  }
}

std::optional<std::vector<std::string>> ListComments(const YamlNode& root, const std::string& text,
                                                     std::string& why) {
  std::vector<Comment> found;
  if (!Scanner(root, text).Run(found, why)) return std::nullopt;
  std::vector<std::string> texts;
  for (Comment& comment : found) texts.push_back(std::move(comment.text));
  return texts;
}

std::optional<Comments> FindComments(const YamlNode& root, const std::string& text,
                                     std::string& why) {
  std::vector<Comment> found;
  if (!Scanner(root, text).Run(found, why)) return std::nullopt;
  std::vector<Entry> entries;
  CollectEntries(root, entries);
  Comments comments;
  for (const Comment& comment : found) Attach(comment, entries, comments);
  return comments;
}

}  // namespace trainwreck
