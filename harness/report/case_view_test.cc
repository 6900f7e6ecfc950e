#include "harness/report/case_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "harness/report/chart.h"

namespace trainwreck {
namespace case_view_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

int ColumnsOf(const std::string& line) {
  int columns = 0;
  for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  return columns;
}

int WidestOf(const std::string& text) {
  std::istringstream lines(text);
  int widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, ColumnsOf(line));
  return widest;
}

TEST(Chart, BarsAreAsHighAsTheirValues) {
  const std::vector<double> values = {0, 7.5, 15, 15, kNaN, 3};
  EXPECT_THAT(Chart(values, {.lo = 0, .hi = 15}, {.width = 6, .height = 2}),
              ElementsAre(" ▁██  ", "▁███x▄"));
  EXPECT_THAT(Chart(values, {.lo = 0, .hi = 15}, {.width = 3, .height = 1}), ElementsAre("▅█x"));
  EXPECT_THAT(Chart(values, {.lo = 0, .hi = 15}, {.width = 6, .height = 1, .unicode = false}),
              ElementsAre(".+##x."));
  EXPECT_THAT(Chart({}, {}, {.height = 2}), ElementsAre("", ""));
}

TEST(Chart, AColumnIsWhereItsValuesAre) {
  for (const std::size_t count : {1U, 7U, 10U, 96U, 1000U}) {
    for (const int width : {1, 3, 40, 96}) {
      for (std::size_t index = 0; index < count; ++index) {
        std::vector<double> values(count, 0);
        values[index] = kNaN;
        const std::string line = Chart(values, {}, {.width = width, .height = 1})[0];
        EXPECT_EQ(ColumnsOf(line.substr(0, line.find('x'))), ColumnOf(index, count, width));
      }
    }
  }
  EXPECT_EQ(ColumnOf(10, 10, 5), -1);
}

TEST(Wrapped, BreaksAtBlanksAndNeverInACharacter) {
  EXPECT_EQ(Wrapped("> ", "the loss is not finite", 13, "  "), "> the loss is\n  not finite");
  EXPECT_EQ(Wrapped("", "ααααααααααα", 8, ""), "αααααααα\nααα");
  EXPECT_EQ(Wrapped("- ", "", 8, " "), "- ");
}

Verdict Failing() {
  Verdict verdict;
  verdict.case_name = verdict.scenario = "nan/mine";
  verdict.title = "A rate that is too high\x1b[31m";
  verdict.verdict = VerdictKind::kFail;
  verdict.failure_class = FailureClass::kSymptomAbsent;
  verdict.reason = "'blows_up' does not hold in fault, which is claimed of all of its seeds";
  for (const char* name : {"control", "fault"}) {
    ArmSummary arm;
    arm.arm = name;
    arm.kind = name == std::string("fault") ? ArmKind::kFault : ArmKind::kControl;
    arm.median_seed = 1;
    for (int step = 0; step < 96; ++step) {
      arm.steps.push_back(step);
      arm.loss.push_back(4.0 / (1 + step));
    }
    verdict.arms.push_back(arm);
  }
  CheckResult check;
  check.check = "learns";
  check.formula = "mean(loss[-5:]) < 0.5 * mean(loss[:5])";
  check.arm = "control";
  check.agree = 5;
  check.worst_margin = 3;
  check.unit = formula::Unit::kOctave;
  verdict.checks.push_back(check);
  check.check = "blows_up";
  check.formula = "eventually nonfinite(loss)";
  check.arm = "fault";
  check.agree = 0;
  check.disagree = 5;
  check.worst_margin = -1.5;
  check.failure_class = FailureClass::kSymptomAbsent;
  check.file = testing::TempDir() + "/mine.yaml";
  check.position = {.line = 2, .column = 13, .length = 26};
  check.rerun_command = "trainwreck rerun out/nan/mine/fault/1";
  std::ofstream(check.file) << "symptoms:\n  blows_up: eventually nonfinite(loss)\n";
  verdict.checks.push_back(check);
  return verdict;
}

std::map<std::string, KeptTrace> Kept() {
  KeptTrace kept{.seed = 2, .folder = "out/nan/mine/fault/2", .trace = {}};
  for (int step = 0; step < 96; ++step) kept.trace.series[{"grad_norm", 0}].Set(step, step);
  kept.trace.events.push_back({.name = "fired",
                               .step = 48,
                               .rank = 0,
                               .time_s = 0,
                               .fields = {{"t", "event"}, {"event", "fired"}, {"id", "hot_lr"}}});
  for (int step = 9; step < 96; step += 10) {
    kept.trace.events.push_back({.name = "checkpoint_saved",
                                 .step = step,
                                 .rank = 0,
                                 .time_s = 0,
                                 .fields = {{"steps_done", step + 1}}});
  }
  return {{"fault", kept}};
}

TEST(CaseView, SaysAllOfACase) {
  const std::string text = CaseView(Failing(), {}, {.width = 80});
  EXPECT_THAT(text, HasSubstr("FAIL symptom_absent  nan/mine\nA rate that is too high\\x1b[31m\n"));
  EXPECT_THAT(text, HasSubstr("  fault (fault, ok, seed 1), ends at 0.04167\n"));
  EXPECT_THAT(text, HasSubstr("  ok   learns in control: 5 as claimed\n"));
  EXPECT_THAT(text, HasSubstr("margin     +3 octaves         ████████████\n"));
  EXPECT_THAT(text, HasSubstr("  >>   blows_up in fault: 0 as claimed, 5 not\n"));
  EXPECT_THAT(text, HasSubstr("margin     -1.5 octaves       ██████\n"));
  EXPECT_THAT(text, HasSubstr("    2 |   blows_up: eventually nonfinite(loss)\n"
                              "      |             ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"));
  EXPECT_THAT(text, HasSubstr("\nrepeat\n  trainwreck run nan/mine --keep all\n"
                              "  trainwreck rerun out/nan/mine/fault/1\n"));
  EXPECT_THAT(text, HasSubstr("no run was kept"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(CaseView, KeptRunsGiveEventsAndOtherSignals) {
  const std::string text = CaseView(Failing(), Kept(), {.width = 80, .signal = "grad_norm"});
  EXPECT_THAT(text, HasSubstr("fault (fault, ok, seed 2), ends at 95\n"));
  EXPECT_THAT(text, HasSubstr("  control (control, ok, seed 1)\n  no samples\n"));
  // Of 96 steps in 68 columns, the 49th is in the 34th (from 0).
  EXPECT_THAT(text, HasSubstr("\n" + std::string(11 + 34, ' ') + "^ fired at step 48\n"));
  EXPECT_THAT(text, HasSubstr("  fault, seed 2\n    step 48, rank 0    fired id=hot_lr\n"));
  EXPECT_THAT(text, HasSubstr("checkpoint_saved (9 times to step 89) steps_done=10\n"));
}

TEST(CaseView, FitsIntoANarrowWindow) {
  for (const int width : {40, 60, 80, 200}) {
    const std::string text = CaseView(Failing(), Kept(), {.width = width, .signal = "grad_norm"});
    // Commands are to be copied, and places in files to be clicked.
    const std::string wrapped = text.substr(0, text.find("\nchecks"));
    EXPECT_LE(WidestOf(wrapped), width);
    EXPECT_THAT(text, HasSubstr("fired at step 48"));
  }
}

TEST(CaseView, AsciiIsAsciiAlone) {
  for (const char c : CaseView(Failing(), Kept(), {.unicode = false})) ASSERT_GE(c, 0);
}

}  // namespace case_view_test
}  // namespace trainwreck
