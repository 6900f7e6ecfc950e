#include "harness/formula/token.h"

#include <charconv>
#include <cmath>

namespace trainwreck::formula {
namespace {

// <cctype> depends on the locale and dislikes negative chars.
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Tokens Run() {
    while (result_.errors.empty()) {
      while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
      if (at_ == text_.size()) break;
      Next();
    }
    result_.tokens.push_back({TokenKind::kEnd, text_.size(), text_.size(), {}, 0});
    return std::move(result_);
  }

 private:
  char Peek(std::size_t ahead) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void Add(TokenKind kind, std::size_t length, std::string_view text, double number = 0) {
    result_.tokens.push_back({kind, at_, at_ + length, text, number});
    at_ += length;
  }

  void Fail(std::size_t length, std::string message, std::string hint = "") {
    result_.errors.push_back({at_, at_ + length, std::move(message), std::move(hint)});
  }

  void Next() {
    const char c = text_[at_];
    if (IsLetter(c)) {
      std::size_t length = 1;
      while (IsLetter(Peek(length)) || IsDigit(Peek(length))) ++length;
      return Add(TokenKind::kName, length, text_.substr(at_, length));
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) return Number();
    if (c == '"' || c == '\'') return Delimited(TokenKind::kString, c, "the string");
    if (c == '{') return Delimited(TokenKind::kGlob, '}', "the module pattern");
    Symbol();
  }

  void Number() {
    std::size_t length = 0;
    while (IsDigit(Peek(length))) ++length;
    if (Peek(length) == '.') {
      ++length;
      while (IsDigit(Peek(length))) ++length;
    }
    if (Peek(length) == 'e' || Peek(length) == 'E') {
      std::size_t exponent = length + 1;
      if (Peek(exponent) == '+' || Peek(exponent) == '-') ++exponent;
      if (IsDigit(Peek(exponent))) {
        length = exponent;
        while (IsDigit(Peek(length))) ++length;
      }
    }
    double value = 0;
    const char* first = text_.data() + at_;
    const auto parsed = std::from_chars(first, first + length, value);
    if (parsed.ec != std::errc() || parsed.ptr != first + length) {
      return Fail(length, "a number that is out of range");
    }
    const bool ends_word = !IsLetter(Peek(length + 1)) && !IsDigit(Peek(length + 1));
    if (Peek(length) == 's' && ends_word) {
      return Add(TokenKind::kDuration, length + 1, text_.substr(at_, length + 1), value);
    }
    if (IsLetter(Peek(length))) {
      return Fail(length + 1, "letters after a number",
                  "only 's' may follow a number: seconds, in a window");
    }
    Add(TokenKind::kNumber, length, text_.substr(at_, length), value);
  }

  void Delimited(TokenKind kind, char close, const char* what) {
    const std::size_t end = text_.find(close, at_ + 1);
    if (end == std::string_view::npos) {
      return Fail(1, std::string(what) + " is not closed", std::string("close it with ") + close);
    }
    Add(kind, end + 1 - at_, text_.substr(at_ + 1, end - at_ - 1));
  }

  void Symbol() {
    const char c = text_[at_];
    const char next = Peek(1);
    if (c == '!' && next != '=') return Fail(1, "unknown operator '!'", "write: not");
    if (c == '&') return Fail(next == c ? 2 : 1, "unknown operator '&'", "write: and");
    if (c == '|') return Fail(next == c ? 2 : 1, "unknown operator '|'", "write: or");
    if ((c == '-' || c == '=') && next == '>') {
      return Fail(2, "unknown operator '" + std::string(text_.substr(at_, 2)) + "'",
                  c == '=' ? "write: implies, or >= for 'at least'" : "write: implies");
    }
    if (c == '%') return Fail(1, "unknown operator '%'", "write a share as a number: 50% is 0.5");
    if ((c == '<' || c == '>' || c == '=' || c == '!') && next == '=') {
      return Add(TokenKind::kSymbol, 2, text_.substr(at_, 2));
    }
    if (std::string_view("()[],:.@+-*/<>=").find(c) != std::string_view::npos) {
      return Add(TokenKind::kSymbol, 1, text_.substr(at_, 1));
    }
    // A whole UTF-8 sequence, so that the caret does not cut a character.
    std::size_t length = 1;
    while ((static_cast<unsigned char>(Peek(length)) & 0xC0) == 0x80) ++length;
    const bool printable = static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
    const std::string shown =
        printable ? " '" + std::string(text_.substr(at_, length)) + "'" : std::string();
    Fail(length, "unexpected character" + shown);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Tokens result_;
};

}  // namespace

Tokens Tokenize(std::string_view text) { return Lexer(text).Run(); }

}  // namespace trainwreck::formula
