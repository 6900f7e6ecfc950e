// Thousands of damaged scenario files, the same ones each time: reading them must end, say what is
// wrong and never crash. scenario_fuzzer.cc has the entry point for coverage-guided fuzzing.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "harness/spec/fuzz_target.h"
#include "harness/spec/test_target.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Corpus() {
  std::vector<std::string> files;
  for (const char* folder : {"harness/spec/testdata/family", "tests/bad_scenarios"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const std::string& file : files) texts.push_back(ReadTestFile(file));
  return texts;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& corpus) : corpus_(corpus) {}

  std::string Next() {
    std::string text = Any(corpus_);
    const std::size_t changes = 1 + Below(4);
    for (std::size_t i = 0; i < changes; ++i) Change(text);
    return text;
  }

 private:
  std::size_t Below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  template <typename T>
  const T& Any(const std::vector<T>& list) {
    return list[Below(list.size())];
  }

  void Change(std::string& text) {
    const std::size_t at = Below(text.size() + 1);
    switch (Below(9)) {
      case 0:  // one byte
        if (at < text.size()) text[at] = static_cast<char>(Below(256));
        break;
      case 1:  // a hole
        text.erase(at, Below(20));
        break;
      case 2:  // a piece of another file
        text.insert(at, Piece(Any(corpus_)));
        break;
      case 3:  // a token that means something
        text.insert(at, Any(kTokens));
        break;
      case 4:
        SwapLines(text);
        break;
      case 5:  // a line again
        text.insert(LineBegin(text, at), Line(text, at));
        break;
      case 6:  // a line deeper or less deep
        Indent(text, LineBegin(text, at));
        break;
      case 7:
        ReplaceWord(text, at);
        break;
      default:  // an end too soon
        text.resize(at);
    }
  }

  std::string Piece(const std::string& text) {
    const std::size_t begin = Below(text.size() + 1);
    return text.substr(begin, Below(80));
  }

  static std::size_t LineBegin(const std::string& text, std::size_t at) {
    if (at == 0) return 0;
    const std::size_t newline = text.rfind('\n', at - 1);
    return newline == std::string::npos ? 0 : newline + 1;
  }

  static std::string Line(const std::string& text, std::size_t at) {
    const std::size_t begin = LineBegin(text, at);
    const std::size_t end = text.find('\n', begin);
    return text.substr(begin, end == std::string::npos ? end : end - begin + 1);
  }

  void SwapLines(std::string& text) {
    const std::size_t from = Below(text.size() + 1);
    const std::string line = Line(text, from);
    text.erase(LineBegin(text, from), line.size());
    text.insert(LineBegin(text, Below(text.size() + 1)), line);
  }

  void Indent(std::string& text, std::size_t begin) {
    if (Below(2) == 0) {
      text.insert(begin, Below(4), ' ');
    } else if (begin < text.size() && text[begin] == ' ') {
      text.erase(begin, 1 + Below(3));
    }
  }

  void ReplaceWord(std::string& text, std::size_t at) {
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    std::size_t end = at;
    while (at > 0 && is_word(text[at - 1])) --at;
    while (end < text.size() && is_word(text[end])) ++end;
    text.replace(at, end - at, Any(kTokens));
  }

  static const std::vector<std::string> kTokens;

  const std::vector<std::string>& corpus_;
  std::minstd_rand random_{20240229};
};

const std::vector<std::string> Mutator::kTokens = {"{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ": ",
                                                   "- ",
                                                   "\n",
                                                   "\n  ",
                                                   "&a ",
                                                   "*a",
                                                   "<<: ",
                                                   "!!int ",
                                                   "---\n",
                                                   "...\n",
                                                   "|\n",
                                                   ">-\n",
                                                   "\"",
                                                   "'",
                                                   "#",
                                                   "%",
                                                   "@",
                                                   "~",
                                                   "null",
                                                   "true",
                                                   "false",
                                                   "0",
                                                   "-1",
                                                   "1e308",
                                                   "1e-400",
                                                   "99999999999999999999",
                                                   "2147483648",
                                                   ".nan",
                                                   "\t",
                                                   "\xc3\xa9",
                                                   "\xff",
                                                   "? ",
                                                   "steps",
                                                   "scale",
                                                   "set",
                                                   "with",
                                                   "when",
                                                   "extends: support/good.yaml\n",
                                                   "extends: support/circle.yaml\n",
                                                   "*",
                                                   "??",
                                                   "parallel.ranks: 64",
                                                   "recipe",
                                                   "optimizer.lr",
                                                   "exclude",
                                                   "control.",
                                                   "eventually[:",
                                                   "loss{*}",
                                                   "@0",
                                                   "implies ",
                                                   "(((((((((",
                                                   "not not not "};

TEST(ScenarioFuzz, DamagedFilesAreAnswered) {
  const std::vector<std::string> corpus = Corpus();
  ASSERT_GE(corpus.size(), 60U);
  for (const std::string& text : corpus) FuzzScenario(text);
  constexpr int kInputs = 30'000;
  Mutator mutator(corpus);
  for (int i = 0; i < kInputs; ++i) FuzzScenario(mutator.Next());
}

TEST(ScenarioFuzz, HostileShapesEndSoon) {
  const std::size_t many = 100'000;
  for (const std::string unit :
       {"[",   "{",     "{a: ", "- ",     "? ",  "a: ",   "a:\n", "\"",    "'",
        "&a ", "*a ",   "!a ",  "|\n",    "%\n", "---\n", "[a, ", "{a: [", "#",
        "\t",  "a\n  ", "-\n",  "x: 1\n", "!<",  "((",    "\\"}) {
    std::string text;
    while (text.size() + unit.size() < many) text += unit;
    FuzzScenario(text);
    FuzzScenario("apiVersion: trainwreck/v1\nsymptoms: {a: " + text);
    FuzzScenario("apiVersion: trainwreck/v1\nsymptoms:\n  a: \"" + text + "\"\n");
  }
}

}  // namespace
}  // namespace trainwreck
