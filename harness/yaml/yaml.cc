#include "harness/yaml/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "harness/yaml/syntax_errors.h"

namespace trainwreck {
namespace {

struct GiveUp {};  // thrown out of yaml-cpp's parser when reading on makes no sense

// How far the token at `position` reaches on its line.
int TokenLength(const std::string& line, const Position& position, const std::string& text) {
  const std::size_t begin = position.column - 1;
  if (begin >= line.size()) return 1;
  const char first = line[begin];
  if (first == '"' || first == '\'') {
    for (std::size_t i = begin + 1; i < line.size(); ++i) {
      if (first == '"' && line[i] == '\\') {
        ++i;
      } else if (line[i] == first) {
        if (first == '\'' && i + 1 < line.size() && line[i + 1] == '\'') {
          ++i;
        } else {
          return static_cast<int>(i - begin + 1);
        }
      }
    }
    return static_cast<int>(line.size() - begin);
  }
  if (first == '|' || first == '>') return 1;
  std::size_t length = 0;
  while (length < text.size() && begin + length < line.size() &&
         line[begin + length] == text[length]) {
    ++length;
  }
  return static_cast<int>(std::max<std::size_t>(length, 1));
}

// Builds the tree from yaml-cpp's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(int source, Errors& errors) : source_(source), errors_(errors) {}

  std::optional<YamlNode> Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    YamlNode node = At(mark);
    // An empty value's own mark is that of whatever comes next, so its key stands for it.
    if (!frames_.empty() && frames_.back().key) node.position = frames_.back().key->position;
    Put(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    YamlNode node = At(mark);
    node.kind = YamlNode::Kind::kBad;
    errors_.Add(node, "aliases are not allowed here", "write the value out");
    Put(std::move(node));
  }

  void OnAnchor(const YAML::Mark& mark, const std::string& name) override {
    YamlNode node = At(mark);
    node.position.length = static_cast<int>(std::min<std::size_t>(name.size(), 60)) + 1;
    errors_.Add(node, "anchors are not allowed here", "remove '&" + name + "'");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    YamlNode node = At(mark);
    CheckTag(node, tag);
    node.kind = YamlNode::Kind::kScalar;
    node.text = value;
    node.is_plain = tag != "!";
    node.position.length =
        TokenLength(errors_.SourceLine(source_, node.position.line), node.position, value);
    CheckClosed(node);
    Put(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kList, mark, tag);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kMap, mark, tag);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode node;
    std::optional<YamlNode> key;  // read, its value still to come
    bool drops_value = false;     // the key was rejected
    std::set<std::string> seen;
  };

  YamlNode At(const YAML::Mark& mark) const {
    YamlNode node;
    node.source = source_;
    node.position = {mark.line + 1, mark.column + 1, 1};
    return node;
  }

  void CheckTag(const YamlNode& node, const std::string& tag) {
    const std::string& line = errors_.SourceLine(source_, node.position.line);
    const std::size_t begin = node.position.column - 1;
    // yaml-cpp reports quoted text as tag "!", so the source has to tell.
    const bool is_written = begin < line.size() && line[begin] == '!';
    if (is_written || (!tag.empty() && tag != "?" && tag != "!")) {
      errors_.Add(node, "tags are not allowed here", "remove the '!' and its word");
    }
  }

  // yaml-cpp takes the end of the file for a closing quote.
  void CheckClosed(const YamlNode& node) {
    const std::string& first = errors_.SourceLine(source_, node.position.line);
    std::size_t i = node.position.column - 1;
    const char quote = i < first.size() ? first[i] : '\0';
    if (node.is_plain || (quote != '"' && quote != '\'')) return;
    ++i;
    for (int line = node.position.line; line <= errors_.LineCount(source_); ++line, i = 0) {
      const std::string& text = errors_.SourceLine(source_, line);
      for (; i < text.size(); ++i) {
        if (quote == '"' && text[i] == '\\') {
          ++i;
        } else if (text[i] == quote) {
          if (quote == '"' || i + 1 >= text.size() || text[i + 1] != quote) return;
          ++i;
        }
      }
    }
    errors_.Add(node, "this quote is not closed");
    throw GiveUp();
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    YamlNode node = At(mark);
    CheckTag(node, tag);
    node.kind = kind;
    if (frames_.size() >= static_cast<std::size_t>(kMaxYamlDepth)) {
      errors_.Add(node, "nested more than " + std::to_string(kMaxYamlDepth) + " deep");
      throw GiveUp();
    }
    frames_.push_back({std::move(node), std::nullopt, false, {}});
  }

  void Close() {
    YamlNode node = std::move(frames_.back().node);
    frames_.pop_back();
    Put(std::move(node));
  }

  void Put(YamlNode node) {
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.IsList()) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.key) {
      PutKey(frame, std::move(node));
    } else {
      if (!frame.drops_value) {
        frame.node.keys.push_back(std::move(*frame.key));
        frame.node.items.push_back(std::move(node));
      }
      frame.key.reset();
    }
  }

  void PutKey(Frame& frame, YamlNode key) {
    frame.drops_value = true;
    const std::size_t errors_before = errors_.size();
    if (key.IsMap() || key.IsList()) {
      errors_.Add(key, std::string("a key must be a word, but is ") + Describe(key));
    } else if (key.kind == YamlNode::Kind::kNull || (key.IsScalar() && key.text.empty())) {
      errors_.Add(key, "a key is missing here");
    } else if (key.text == "<<") {
      errors_.Add(key, "merge keys are not allowed here", "'extends' takes over another scenario");
    } else if (key.IsScalar() && !frame.seen.insert(key.text).second) {
      const YamlNode* first = frame.node.FindKey(key.text);
      errors_.Add(key, "key '" + key.text + "' is given twice",
                  first == nullptr ? "" : "first on line " + std::to_string(first->position.line));
    } else {
      frame.drops_value = false;
    }
    frame.node.is_partial = frame.node.is_partial || errors_.size() > errors_before;
    frame.key = std::move(key);
  }

  const int source_;
  Errors& errors_;
  std::vector<Frame> frames_;
  std::optional<YamlNode> root_;
};

// A scenario is one document: the start of a second one is an error.
class NoMoreDocuments : public TreeBuilder {
 public:
  NoMoreDocuments(int source, Errors& errors)
      : TreeBuilder(source, errors), source_(source), errors_(errors) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    errors_.Add(source_, {mark.line + 1, mark.column + 1, 1},
                "a second document begins here: a scenario file holds exactly one",
                "check the indentation, and that there is no '---' in the middle");
    throw GiveUp();
  }

 private:
  const int source_;
  Errors& errors_;
};

// Length of the UTF-8 character at `i`, 0 when it is none.
std::size_t Utf8Length(const std::string& text, std::size_t i) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond the last code point.
  if (first == 0xE0 && byte(i + 1) < 0xA0) return 0;
  if (first == 0xED && byte(i + 1) > 0x9F) return 0;
  if (first == 0xF0 && byte(i + 1) < 0x90) return 0;
  if (first == 0xF4 && byte(i + 1) > 0x8F) return 0;
  return length;
}

// False when the bytes are no text at all; says where.
bool CheckBytes(const std::string& text, int source, Errors& errors) {
  if (text.size() > kMaxScenarioBytes) {
    errors.Add(source, {},
               "the file is larger than " + std::to_string(kMaxScenarioBytes / 1024) + " KiB");
    return false;
  }
  int line = 1;
  std::size_t line_begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = Utf8Length(text, i);
    const char c = text[i];
    const bool is_newline = c == '\n';
    const bool is_control = (static_cast<unsigned char>(c) < 0x20 && !is_newline && c != '\t' &&
                             !(c == '\r' && i + 1 < text.size() && text[i + 1] == '\n')) ||
                            c == 0x7F;
    if (length == 0 || is_control) {
      errors.Add(
          source, {line, static_cast<int>(i - line_begin) + 1, 1},
          length == 0 ? "this byte is not UTF-8 text" : "control characters are not allowed");
      return false;
    }
    i += length;
    if (is_newline) {
      ++line;
      line_begin = i;
    }
  }
  return true;
}

}  // namespace

const YamlNode* YamlNode::Find(const std::string& key) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].text == key) return &items[i];
  }
  return nullptr;
}

const YamlNode* YamlNode::FindKey(const std::string& key) const {
  for (const YamlNode& candidate : keys) {
    if (candidate.text == key) return &candidate;
  }
  return nullptr;
}

const char* Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "empty";
    case YamlNode::Kind::kScalar:
      return "text";
    case YamlNode::Kind::kMap:
      return "a map";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kBad:
      break;
  }
  return "something else";
}

std::optional<YamlNode> ParseYaml(const std::string& text, int source, Errors& errors) {
  if (!CheckBytes(text, source, errors)) return std::nullopt;
  std::istringstream stream(text);
  TreeBuilder builder(source, errors);
  try {
    YAML::Parser parser(stream);
    const bool has_document = parser.HandleNextDocument(builder);
    if (has_document) {
      NoMoreDocuments no_more(source, errors);
      parser.HandleNextDocument(no_more);
    }
  } catch (const GiveUp&) {
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    AddSyntaxError(error, source, errors);
    return std::nullopt;
  }
  std::optional<YamlNode> root = builder.Take();
  if (!root || root->kind == YamlNode::Kind::kNull) {
    errors.Add(source, {}, "the file is empty",
               "'trainwreck new scenario NAME' writes one to start from");
    return std::nullopt;
  }
  return root;
}

std::optional<std::string> ReadSmallFile(const std::string& path, std::string& why) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    why = "it is no file";
    return std::nullopt;
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    why = errno == 0 ? "it cannot be read" : std::strerror(errno);
    return std::nullopt;
  }
  std::string text(kMaxScenarioBytes + 1, '\0');  // one more than allowed, so that too much shows
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace trainwreck
