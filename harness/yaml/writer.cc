#include "harness/yaml/writer.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

namespace trainwreck {
namespace {

// A plain scalar like this is a number, a boolean or nothing to some reader of YAML.
bool LooksTyped(const std::string& text) {
  static const std::set<std::string> kWords = {"true", "false", "null",  "yes", "no", "on",
                                               "off",  "True",  "False", "~",   "y",  "n"};
  if (text.empty() || kWords.contains(text)) return true;
  return text.find_first_not_of("+-.0123456789eE_xXaAbBcCdDfFoO") == std::string::npos &&
         text.find_first_of("0123456789") != std::string::npos;
}

bool IsPrintable(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7F; });
}

bool MayBePlain(const std::string& text, bool in_flow) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || !IsPrintable(text)) return false;
  if (std::string_view(",[]{}#&*!|>'\"%@`").find(text.front()) != std::string_view::npos) {
    return false;
  }
  const bool is_mark = std::string_view("-?:").find(text.front()) != std::string_view::npos;
  if (is_mark && (text.size() == 1 || text[1] == ' ' || text[1] == text[0])) return false;
  if (text.find(": ") != std::string::npos || text.back() == ':') return false;
  if (text.find(" #") != std::string::npos || text.rfind("...", 0) == 0) return false;
  return !in_flow || text.find_first_of(",[]{}") == std::string::npos;
}

std::string DoubleQuoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string SingleQuoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

std::string ScalarText(const YamlNode& node, bool in_flow) {
  const bool is_typed_text = !node.is_plain && LooksTyped(node.text);
  if (!is_typed_text && MayBePlain(node.text, in_flow)) return node.text;
  const bool needs_escapes = !IsPrintable(node.text);
  const bool has_marks = node.text.find_first_of("\"\\") != std::string::npos;
  return has_marks && !needs_escapes ? SingleQuoted(node.text) : DoubleQuoted(node.text);
}

class Writer {
 public:
  Writer(const Comments& comments, const YamlStyle& style) : comments_(comments), style_(style) {}

  std::string Write(const YamlNode& root) {
    Lines(comments_.header, 0);
    Entries(root, 0);
    Lines(comments_.footer, 0);
    return out_;
  }

 private:
  void Lines(const std::vector<std::string>& comments, std::size_t indent) {
    for (const std::string& comment : comments) {
      out_ += std::string(indent, ' ') + comment + "\n";
    }
  }

  // Characters, not bytes.
  static std::size_t Width(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  }
  bool Fits(const std::string& line) const { return Width(line) <= style_.width; }

  void Entries(const YamlNode& node, std::size_t indent) {
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const AttachedComments& its = comments_.Of(node, i);
      Lines(its.before, indent);
      const std::string margin(indent, ' ');
      if (node.IsMap()) {
        path_.push_back(node.keys[i].text);
        Value(margin + ScalarText(node.keys[i], false) + ":", node.items[i], indent, its.beside);
        path_.pop_back();
      } else {
        Value(margin + "-", node.items[i], indent, its.beside);
      }
      Lines(its.after, indent);
    }
  }

  // The text without a line break; empty where that cannot be.
  std::string OnOneLine(const YamlNode& node, bool in_flow) const {
    switch (node.kind) {
      case YamlNode::Kind::kScalar:
        return ScalarText(node, in_flow);
      case YamlNode::Kind::kMap:
      case YamlNode::Kind::kList: {
        const bool is_map = node.IsMap();
        std::string text = is_map ? "{" : "[";
        for (std::size_t i = 0; i < node.items.size(); ++i) {
          if (i > 0) text += ", ";
          if (is_map) text += ScalarText(node.keys[i], true) + ": ";
          text += OnOneLine(node.items[i], true);
        }
        return text + (is_map ? "}" : "]");
      }
      default:
        return "";
    }
  }

  bool MustBeBlock(const YamlNode& node) const {
    return node.IsMap() && !node.items.empty() && style_.is_block && style_.is_block(path_);
  }

  // One line, with its comment where both fit; else the comment stands above.
  void Line(const std::string& line, const std::string& comment, std::size_t indent) {
    if (comment.empty()) {
      out_ += line + "\n";
    } else if (Fits(line + "  " + comment)) {
      out_ += line + "  " + comment + "\n";
    } else {
      out_ += std::string(indent, ' ') + comment + "\n" + line + "\n";
    }
  }

  void Value(const std::string& head, const YamlNode& node, std::size_t indent,
             const std::string& beside) {
    if (node.kind == YamlNode::Kind::kNull) return Line(head, beside, indent);
    if (!MustBeBlock(node) && !comments_.AreBelow(node)) {
      const std::string line = head + " " + OnOneLine(node, false);
      if (Fits(line)) return Line(line, beside, indent);
    }
    if (node.IsScalar()) return LongText(head, node, indent, beside);
    const bool is_plain_list = node.IsList() && !comments_.AreBelow(node) &&
                               std::all_of(node.items.begin(), node.items.end(),
                                           [](const YamlNode& item) { return item.IsScalar(); });
    if (is_plain_list) return FilledList(head, node, indent, beside);
    if (head.back() == '-') return BlockInList(head, node, indent, beside);
    Line(head, beside, indent);
    Entries(node, indent + 2);
  }

  // `- key: value`, the other keys below it.
  void BlockInList(const std::string& head, const YamlNode& node, std::size_t indent,
                   const std::string& beside) {
    if (!beside.empty()) Lines({beside}, indent);
    const std::size_t begin = out_.size();
    Entries(node, indent + 2);
    out_.replace(begin, head.size(), head);
  }

  void FilledList(const std::string& head, const YamlNode& node, std::size_t indent,
                  const std::string& beside) {
    if (!beside.empty()) Lines({beside}, indent);
    std::string line = head + " [";
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const bool is_last = i + 1 == node.items.size();
      const std::string item = ScalarText(node.items[i], true) + (is_last ? "]" : ",");
      const std::string gap = i == 0 ? "" : " ";
      if (Fits(line + gap + item) || i == 0) {
        line += gap + item;
      } else {
        out_ += line + "\n";
        line = std::string(indent + 2, ' ') + item;
      }
    }
    out_ += line + "\n";
  }

  void LongText(const std::string& head, const YamlNode& node, std::size_t indent,
                const std::string& beside) {
    const std::string& text = node.text;
    const bool folds = IsPrintable(text) && text.find("  ") == std::string::npos &&
                       text.front() != ' ' && text.back() != ' ' &&
                       text.find(' ') != std::string::npos;
    if (!folds) return Line(head + " " + ScalarText(node, false), beside, indent);
    if (!beside.empty()) Lines({beside}, indent);
    out_ += head + " >-\n";
    const std::string margin(indent + 2, ' ');
    std::string line;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (!line.empty() && !Fits(margin + line + " " + word)) {
        out_ += margin + line + "\n";
        line.clear();
      }
      line += (line.empty() ? "" : " ") + word;
    }
    out_ += margin + line + "\n";
  }

  const Comments& comments_;
  const YamlStyle& style_;
  std::vector<std::string> path_;
  std::string out_;
};

}  // namespace

std::string WriteYaml(const YamlNode& root, const Comments& comments, const YamlStyle& style) {
  return Writer(comments, style).Write(root);
}

bool IsSameTree(const YamlNode& a, const YamlNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size()) return false;
  if (a.IsScalar() && a.is_plain != b.is_plain && LooksTyped(a.text)) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (a.IsMap() && a.keys[i].text != b.keys[i].text) return false;
    if (!IsSameTree(a.items[i], b.items[i])) return false;
  }
  return true;
}

}  // namespace trainwreck
