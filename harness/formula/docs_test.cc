// docs/reference/formulas.md says nothing that is not so: its formulas parse and pass the checker,
// and its results are those that the evaluator gives.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace docs_test {

using testing::TestRun;

constexpr char kDocument[] = "docs/reference/formulas.md";

struct Line {
  int number;
  std::string text;
};

// The lines inside the blocks that begin with ```kind.
std::vector<Line> Blocks(const std::string& kind) {
  std::ifstream file(kDocument);
  std::vector<Line> lines;
  std::string text;
  bool inside = false;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.rfind("```", 0) == 0) {
      inside = !inside && text == "```" + kind;
    } else if (inside) {
      lines.push_back({number, text});
    }
  }
  return lines;
}

std::string Short(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value == 0 ? 0.0 : value);
  return buffer;
}

std::string Written(const Reading& reading) {
  static const char* const truths[] = {"false", "unknown", "true"};
  std::string text = truths[static_cast<int>(reading.truth)];
  for (Unit unit : {Unit::kOctave, Unit::kPlain, Unit::kStep, Unit::kSecond}) {
    const auto& margin = reading.margins[static_cast<int>(unit)];
    if (!margin) continue;
    text += (text.find(';') == std::string::npos ? "; " : ", ") + Short(margin->lo);
    if (margin->lo != margin->hi) text += " to " + Short(margin->hi);
    text += unit == Unit::kPlain ? " plain" : std::string(" ") + ToString(unit);
  }
  return text;
}

TestRun ExampleRun() {
  TestRun run(8);
  for (const Line& line : Blocks("formula-run")) {
    std::istringstream words(line.text);
    std::string name, word;
    words >> name;
    name.pop_back();
    if (name == "event") {
      int step = 0;
      words >> name >> step >> word;
      run.Happened(name, step, {{"id", word}});
      continue;
    }
    std::vector<double> values;
    while (words >> word) values.push_back(word == "-" ? testing::kMissing : std::stod(word));
    run.With(name, values);
  }
  return run;
}

TEST(Document, FormulasPassTheChecker) {
  const std::vector<Line> lines = Blocks("formula");
  EXPECT_GT(lines.size(), 30u);
  for (const Line& line : lines) {
    EXPECT_EQ(testing::Errors(line.text, testing::TestVocabulary(120, 2)), "")
        << kDocument << ":" << line.number << ": " << line.text;
  }
}

TEST(Document, ResultsAreTheEvaluators) {
  const TestRun run = ExampleRun();
  const std::vector<Line> lines = Blocks("formula-results");
  EXPECT_GT(lines.size(), 10u);
  std::string fresh;  // to paste into the document when the example changes
  bool same = true;
  for (const Line& line : lines) {
    const std::size_t arrow = line.text.find("  => ");
    const std::string text = line.text.substr(0, arrow);
    EXPECT_EQ(testing::Errors(text, testing::TestVocabulary(8)), "") << line.number;
    const std::string result = text + "  => " + Written(testing::Read(text, run));
    fresh += result + "\n";
    same = same && result == line.text;
  }
  EXPECT_TRUE(same) << fresh;
}

}  // namespace docs_test
}  // namespace trainwreck::formula
