// Laws that every formula obeys, over random formulas and random runs.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "harness/formula/evaluator.h"
#include "harness/formula/naive_oracle.h"
#include "harness/formula/parser.h"
#include "harness/formula/random_formula.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace {

using testing::FormulaKinds;
using testing::NaiveOracle;
using testing::Prefix;
using testing::RandomFormula;
using testing::RandomInnerFormula;
using testing::RandomRun;
using testing::RandomWindow;
using testing::Read;
using testing::Tape;
using testing::TestRun;

constexpr int kTapeBytes = 220;

// Read by RapidCheck when the first property runs; what the caller has set stands.
const int kEnough = setenv("RC_PARAMS", "max_success=1500", /*overwrite=*/0);

Tape RandomTape() {
  return Tape(*rc::gen::container<std::vector<std::uint8_t>>(kTapeBytes,
                                                             rc::gen::arbitrary<std::uint8_t>()));
}

int RandomSteps(Tape& tape) { return 3 + tape.Pick(8); }

// The run as far as it goes into a formula: for the message of a failure.
std::string Shown(const RunTrace& run) {
  std::string text;
  for (const auto& [key, series] : run.series) {
    text += key.first + ":";
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      text += series.present[i] ? " " + std::to_string(series.values[i]) : " -";
    }
    text += "\n";
  }
  for (const Event& event : run.events) {
    text += event.name + "@" + std::to_string(event.step) + "\n";
  }
  return text;
}

bool Same(double a, double b) {  // log2 of a product is the sum of two only nearly
  return a == b || std::abs(a - b) < 1e-9;
}

bool SameReadings(const Reading& a, const Reading& b) {
  if (a.truth != b.truth) return false;
  for (int unit = 0; unit < kUnitCount; ++unit) {
    const auto &x = a.margins[unit], &y = b.margins[unit];
    if (x.has_value() != y.has_value()) return false;
    if (x && !(x->lo == y->lo && x->hi == y->hi)) return false;
  }
  return true;
}

Reading Negated(Reading reading) {
  reading.truth = static_cast<Truth>(2 - static_cast<int>(reading.truth));
  for (auto& margin : reading.margins) {
    if (margin) margin = Interval{-margin->hi, -margin->lo};
  }
  return reading;
}

std::string Written(const Reading& reading) {
  std::string text = "truth " + std::to_string(static_cast<int>(reading.truth));
  for (int unit = 0; unit < kUnitCount; ++unit) {
    if (!reading.margins[unit]) continue;
    text += "; unit " + std::to_string(unit) + " [" + std::to_string(reading.margins[unit]->lo) +
            ", " + std::to_string(reading.margins[unit]->hi) + "]";
  }
  return text;
}

RC_GTEST_PROP(Formulas, PassTheCheckerAndPrintToThemselves, ()) {
  Tape tape = RandomTape();
  const int steps = RandomSteps(tape);
  const std::string text = RandomFormula(tape, steps, {});
  RC_LOG() << text;
  const std::string errors = testing::Errors(text, testing::TestVocabulary(steps));
  RC_ASSERT(errors.empty());
  const std::string printed = ToText(*ParseTree(text).root);
  ParsedTree again = ParseTree(printed);
  RC_ASSERT(again.root != nullptr);
  RC_ASSERT(ToText(*again.root) == printed);
  const TestRun run = RandomRun(tape, steps);
  RC_ASSERT(SameReadings(Read(text, run), Read(printed, run)));
}

RC_GTEST_PROP(Evaluator, AgreesWithTheNaiveOracle, ()) {
  Tape tape = RandomTape();
  const int steps = RandomSteps(tape);
  FormulaKinds kinds;
  kinds.everything = false;
  const std::string text = RandomFormula(tape, steps, kinds);
  const TestRun full = RandomRun(tape, steps);
  const bool whole = tape.Pick(2) == 0;
  const RunTrace run = whole ? full.trace() : Prefix(full.trace(), tape.Pick(steps));
  RC_LOG() << text << "\n" << Shown(run);
  const ParsedTree tree = ParseTree(text);
  const Value naive = NaiveOracle(run).OverRun(*tree.root);
  Runs runs;
  runs.self = &run;
  const Value fast = Evaluator(runs, testing::TestTarget()).OverRun(*tree.root, {});
  RC_ASSERT(static_cast<int>(fast.truth) == static_cast<int>(naive.truth));
  for (int unit : kTrackUnits) {
    const Interval expected = naive.In(unit), seen = fast.In(unit);
    RC_LOG() << "unit " << unit << ": [" << seen.lo << ", " << seen.hi << "], naive ["
             << expected.lo << ", " << expected.hi << "]";
    RC_ASSERT(Same(seen.lo, expected.lo));
    RC_ASSERT(Same(seen.hi, expected.hi));
  }
}

RC_GTEST_PROP(Margins, SignAgreesWithTruth, ()) {
  Tape tape = RandomTape();
  const int steps = RandomSteps(tape);
  const std::string text = RandomFormula(tape, steps, {});
  const TestRun full = RandomRun(tape, steps);
  const RunTrace run = tape.Pick(2) == 0 ? full.trace() : Prefix(full.trace(), tape.Pick(steps));
  RC_LOG() << text << "\n" << Shown(run);
  const Reading reading = Read(text, run);
  RC_LOG() << Written(reading);
  for (const auto& margin : reading.margins) {
    if (!margin) continue;
    RC_ASSERT(margin->lo <= margin->hi);
    if (margin->lo > 0) RC_ASSERT(reading.truth == Truth::kTrue);
    if (margin->hi < 0) RC_ASSERT(reading.truth == Truth::kFalse);
  }
}

RC_GTEST_PROP(Logic, IsDual, ()) {
  Tape tape = RandomTape();
  const int steps = RandomSteps(tape);
  const std::string p = "(" + RandomInnerFormula(tape, steps, 2, {}) + ")";
  const std::string q = RandomFormula(tape, steps, {}), r = RandomFormula(tape, steps, {});
  const std::string window = RandomWindow(tape, steps);
  const TestRun full = RandomRun(tape, steps);
  const RunTrace run = tape.Pick(2) == 0 ? full.trace() : Prefix(full.trace(), tape.Pick(steps));
  RC_LOG() << p << " under " << window << ", " << q << ", " << r << "\n" << Shown(run);
  auto same = [&](const std::string& a, const std::string& b) {
    const Reading x = Read(a, run), y = Read(b, run);
    RC_LOG() << a << ": " << Written(x) << "\n" << b << ": " << Written(y);
    RC_ASSERT(SameReadings(x, y));
  };
  same("not always" + window + " " + p, "eventually" + window + " not " + p);
  same("never" + window + " " + p, "always" + window + " not " + p);
  same("always" + window + " not historically" + window + " " + p,
       "always" + window + " once" + window + " not " + p);
  same("not (" + q + ") and not (" + r + ")", "not ((" + q + ") or (" + r + "))");
  same("(" + q + ") implies (" + r + ")", "not (" + q + ") or (" + r + ")");
  RC_ASSERT(SameReadings(Read("not (" + q + ")", run), Negated(Read(q, run))));
}

RC_GTEST_PROP(Margins, RiseWithTheSignal, ()) {
  Tape tape = RandomTape();
  const int steps = RandomSteps(tape);
  FormulaKinds kinds;
  kinds.rising = true;
  const std::string text = RandomFormula(tape, steps, kinds);
  const TestRun low = RandomRun(tape, steps);
  TestRun high = low;
  for (double& value : high.trace().series[{"lr", 0}].values) value += tape.Pick(4);
  RC_LOG() << text << "\n" << Shown(low.trace()) << Shown(high.trace());
  const Reading before = Read(text, low), after = Read(text, high);
  RC_ASSERT(static_cast<int>(before.truth) <= static_cast<int>(after.truth));
  const int plain = static_cast<int>(Unit::kPlain);
  RC_ASSERT(before.margins[plain]->lo <= after.margins[plain]->lo);
  RC_ASSERT(before.margins[plain]->hi <= after.margins[plain]->hi);
  const Reading down = Read("not (" + text + ")", low), up = Read("not (" + text + ")", high);
  RC_ASSERT(down.margins[plain]->lo >= up.margins[plain]->lo);
}

RC_GTEST_PROP(Prefixes, ContainTheFinalValue, ()) {
  Tape tape = RandomTape();
  const int steps = RandomSteps(tape);
  const std::string text = RandomFormula(tape, steps, {});
  const TestRun run = RandomRun(tape, steps);
  RC_LOG() << text << "\n" << Shown(run.trace());
  Reading later = Read(text, run);
  for (int known = steps; known >= 0; --known) {
    const Reading prefix = Read(text, Prefix(run.trace(), known));
    RC_LOG() << known << " steps: " << Written(prefix) << "; later: " << Written(later);
    RC_ASSERT(prefix.truth == Truth::kUnknown || prefix.truth == later.truth);
    for (int unit = 0; unit < kUnitCount; ++unit) {
      if (!later.margins[unit]) continue;
      RC_ASSERT(prefix.margins[unit].has_value());
      RC_ASSERT(prefix.margins[unit]->lo <= later.margins[unit]->lo);
      RC_ASSERT(prefix.margins[unit]->hi >= later.margins[unit]->hi);
    }
    later = prefix;
  }
}

// Seconds: a run whose steps are a second apart reads the same by the clock.
RC_GTEST_PROP(Seconds, AgreeWithStepsOnEvenTimes, ()) {
  Tape tape = RandomTape();
  const int steps = RandomSteps(tape);
  FormulaKinds kinds;
  kinds.everything = false;
  const std::string p = "(" + RandomInnerFormula(tape, steps, 1, kinds) + ")";
  kinds.sparse = false;  // precedes reads every step
  const std::string r = "(" + RandomInnerFormula(tape, steps, 1, kinds) + ")";
  const std::string q = "(" + RandomInnerFormula(tape, steps, 1, kinds) + ")";
  const int from = tape.Pick(steps), to = from + tape.Pick(steps - from);
  const std::string a = std::to_string(from), b = std::to_string(to);
  TestRun run = RandomRun(tape, steps);
  for (int step = 0; step < steps; ++step) run.At("skipped", step, 0);
  std::vector<double> times;
  for (int step = 0; step < steps; ++step) times.push_back(step);
  run.Times(times);
  RC_LOG() << p << ", " << r << ", " << q << " in [" << a << ":" << b << "]\n"
           << Shown(run.trace());
  auto same = [&](const std::string& x, const std::string& y) {
    const Reading steps_reading = Read(x, run), seconds_reading = Read(y, run);
    RC_LOG() << x << ": " << Written(steps_reading) << "\n"
             << y << ": " << Written(seconds_reading);
    RC_ASSERT(steps_reading.truth == seconds_reading.truth);
  };
  const std::string in_steps = "[" + a + ":" + b + "]", in_seconds = "[" + a + "s:" + b + "s]";
  for (const char* word : {"always", "eventually", "never"}) {
    // Not an event alone: that one has a clock of its own.
    const std::string operand = "(" + p + " or skipped == 5)";
    same(word + in_steps + " " + operand, word + in_seconds + " " + operand);
  }
  same("(" + r + " or skipped == 5) precedes" + in_steps + " (" + q + " or skipped == 5)",
       "(" + r + " or skipped == 5) precedes" + in_seconds + " (" + q + " or skipped == 5)");
}

}  // namespace
}  // namespace trainwreck::formula
