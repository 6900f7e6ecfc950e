#include "harness/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <system_error>

#include "harness/protocol/json.h"
#include "harness/report/console.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace report_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string TempFile(const std::string& name) {
  const std::string folder = ::testing::TempDir() + "/report_test";
  std::filesystem::create_directories(folder);
  std::filesystem::remove(folder + "/" + name);
  return folder + "/" + name;
}

Verdict Passed() {
  Verdict verdict;
  verdict.case_name = "nan/lr-too-high[sgd]";
  verdict.scenario = "nan/lr-too-high";
  verdict.point = "sgd";
  verdict.file = "scenarios/nan/lr-too-high.yaml";
  verdict.title = "Blows up";
  verdict.tags = {"smoke"};
  verdict.verdict = VerdictKind::kPass;
  verdict.worst_margin = 0.3125;
  verdict.worst_margin_unit = formula::Unit::kOctave;
  verdict.wall_seconds = 3.25;
  verdict.cpu_seconds = 3;
  ArmSummary arm;
  arm.arm = "control";
  arm.status = ArmStatus::kOk;
  arm.median_seed = 1;
  arm.final_loss = 1.25;
  arm.steps = {0, 10, 20};
  arm.loss = {4, 2, 1.25};
  verdict.arms.push_back(arm);
  return verdict;
}

// With everything that could break a reader: markup, control characters, broken UTF-8, non-finite
// numbers.
Verdict Failed() {
  Verdict verdict = Passed();
  verdict.case_name = "nan/lr-too-high[adamw]";
  verdict.point = "adamw";
  verdict.verdict = VerdictKind::kFail;
  verdict.failure_class = FailureClass::kSymptomAbsent;
  verdict.reason = "'blows_up' in fault: a < b & \"c\" | `d` ]]> \x1b[31m \xff\xfe end";
  verdict.worst_margin.reset();
  verdict.undo_remedies = {"as_it_was"};
  CheckResult check;
  check.check = "blows_up";
  check.formula = "eventually[:60] loss > 3 and loss < 9";
  check.arm = "fault";
  check.file = verdict.file;
  check.position = {12, 5, 7};
  formula::Reading reading;
  reading.truth = formula::Truth::kFalse;
  reading.margins[static_cast<int>(formula::Unit::kStep)] = formula::Interval{-kInf, -3};
  reading.main_unit = formula::Unit::kStep;
  reading.step = 63;
  reading.seen = "loss = nan";
  check.readings = {reading, reading};
  check.agree = 0;
  check.disagree = 2;
  check.worst_margin = -3;
  check.unit = formula::Unit::kStep;
  check.failure_class = FailureClass::kSymptomAbsent;
  check.message = "expected true in 2 of 2 seeds, seen false in 2 (seeds 0, 1)";
  check.seen = "seed 0: loss = nan (step 63)";
  check.evidence = "/out/fault/0/evidence-rank0";
  check.rerun_command = "trainwreck rerun out/nan/lr-too-high/adamw/fault/0";
  check.worst_seed = 0;
  verdict.checks.push_back(check);
  ArmSummary arm;
  arm.arm = "fault";
  arm.kind = ArmKind::kFault;
  arm.status = ArmStatus::kFail;
  arm.median_seed = 0;
  arm.final_loss = kNan;
  arm.steps = {0, 1, 2};
  arm.loss = {4, kInf, kNan};
  verdict.arms.push_back(arm);
  RunResult run;
  run.end = RunEnd::kFailed;
  run.detail = "rank 0 exited with code 1";
  run.exits.push_back({0, 1, "train", 1, 0, "terminate: \x01 boom"});
  run.peak_memory_bytes = 123;
  verdict.runs["fault"] = {run};
  return verdict;
}

Verdict WithOutcome(VerdictKind kind, const FailureClass& failure_class) {
  Verdict verdict = Passed();
  verdict.case_name = verdict.scenario = std::string("x/") + ToString(kind);
  verdict.verdict = kind;
  verdict.failure_class = failure_class;
  verdict.reason = "because";
  return verdict;
}

std::vector<Verdict> OneOfEach() {
  return {Passed(), Failed(), WithOutcome(VerdictKind::kInconclusive, FailureClass::kUndecided),
          WithOutcome(VerdictKind::kError, FailureClass::kTimeout),
          WithOutcome(VerdictKind::kSkip, FailureClass::Requires("device:cuda"))};
}

RunInfo Info() {
  RunInfo info;
  info.version = "0.1.0";
  info.command_line = "trainwreck run \"a b\"";
  info.target = "trainwreck-trainer 0.1.0";
  info.isolation = "fork";
  info.started_utc = "2026-01-31T12:00:00Z";
  info.host = "box";
  info.output_dir = "out";
  info.cores = 2;
  info.runs = 420;
  info.wall_seconds = 48.125;
  info.cpu_seconds = 90;
  return info;
}

TEST(CleanTextTest, KeepsTextAndDefusesTheRest) {
  EXPECT_EQ(CleanText("plain\n\ttext ü €"), "plain\n\ttext ü €");
  EXPECT_EQ(CleanText("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(CleanText(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(CleanText("a\xff"
                      "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(CleanText("cut \xe2\x82"), "cut \uFFFD\uFFFD");
  EXPECT_EQ(CleanText("\xc0\xaf"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(CleanText("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(CleanText("\xef\xbf\xbf"), "\uFFFD");              // not in XML
  EXPECT_EQ(CleanText("\xc2\x9b"
                      "31m"),
            "\\u009b31m");                                    // an escape sequence in one byte
  EXPECT_EQ(CleanText("safe\u202Elive"), "safe\\u202elive");  // written backwards
}

TEST(JsonReportTest, HoldsEverythingThatTheVerdictsHold) {
  const Json json = Json::parse(JsonReport(OneOfEach(), Info()));
  EXPECT_EQ(json["schema"], "trainwreck/verdicts");
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["run"]["cores"], 2);
  EXPECT_EQ(json["counts"],
            Json({{"pass", 1}, {"fail", 1}, {"inconclusive", 1}, {"error", 1}, {"skip", 1}}));
  const Json& failed = json["verdicts"][1];
  EXPECT_EQ(failed["class"], "symptom_absent");
  EXPECT_EQ(failed["worst_margin"], nullptr);
  EXPECT_EQ(failed["checks"][0]["line"], 12);
  EXPECT_EQ(failed["checks"][0]["readings"][0]["margins"]["steps"], Json({"-inf", -3.0}));
  EXPECT_EQ(failed["arms"][1]["loss"], Json({4.0, "inf", "nan"}));
  EXPECT_EQ(failed["arms"][1]["runs"][0]["exits"][0]["code"], 1);
}

TEST(JsonReportTest, ReadsBackWhatItWrote) {
  const std::string path = TempFile("verdicts.json");
  WriteReport(*FindReportFormat("json"), path, OneOfEach(), Info());
  const StoredReport stored = ReadJsonReport(path);
  EXPECT_EQ(JsonReport(stored.verdicts, stored.info), ReadFile(path));
  EXPECT_EQ(JunitReport(stored.verdicts, stored.info),
            JunitReport(ReadJsonReport(path).verdicts, Info()));
}

std::string ReadError(const std::string& text) {
  const std::string path = TempFile("bad.json");
  std::ofstream(path) << text;
  try {
    ReadJsonReport(path);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonReportTest, SaysWhatIsWrongWithAFileThatIsNoReport) {
  EXPECT_THAT(ReadError("{"), HasSubstr("no verdicts of trainwreck"));
  EXPECT_THAT(ReadError("[1]"), HasSubstr("no verdicts of trainwreck"));
  EXPECT_THAT(ReadError(R"({"schema":"trainwreck/verdicts","version":2})"),
              HasSubstr("schema version 2"));
  EXPECT_THAT(ReadError(R"({"schema":"trainwreck/verdicts","version":1})"), HasSubstr("run"));
  EXPECT_THROW(ReadJsonReport("/nonexistent/verdicts.json"), std::runtime_error);
}

TEST(JunitReportTest, IsValid) {
  if (std::system("xmllint --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "xmllint is not installed: the report's form is not checked";
  }
  const std::string path = TempFile("junit.xml");
  WriteReport(*FindReportFormat("junit"), path, OneOfEach(), Info());
  const std::string command =
      "xmllint --noout --schema harness/report/testdata/junit.xsd '" + path + "'";
  EXPECT_EQ(std::system(command.c_str()), 0) << ReadFile(path);
  WriteReport(*FindReportFormat("junit"), path, {}, {});
  EXPECT_EQ(std::system(command.c_str()), 0) << ReadFile(path);
}

TEST(JunitReportTest, CountsAndNamesOutcomes) {
  const std::string xml = JunitReport(OneOfEach(), Info());
  EXPECT_THAT(xml, HasSubstr("<testsuites name=\"trainwreck\" tests=\"5\" failures=\"1\" "
                             "errors=\"2\" skipped=\"1\" time=\"16.250\">"));
  EXPECT_THAT(xml, HasSubstr("<testcase name=\"nan/lr-too-high[adamw]\" "
                             "classname=\"nan.lr-too-high\" time=\"3.250\" "
                             "file=\"scenarios/nan/lr-too-high.yaml\">"));
  EXPECT_THAT(xml, HasSubstr("type=\"symptom_absent\">"));
  EXPECT_THAT(xml, HasSubstr("<error message=\"because\" type=\"undecided\">"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"requires:device:cuda\"/>"));
  EXPECT_THAT(xml, HasSubstr("timestamp=\"2026-01-31T12:00:00\""));
  EXPECT_THAT(xml, HasSubstr("repeat: trainwreck rerun out/nan/lr-too-high/adamw/fault/0"));
  EXPECT_THAT(xml, HasSubstr("lr-too-high.yaml:12:5: symptom_absent"));
  EXPECT_THAT(xml, HasSubstr("a &lt; b &amp; &quot;c&quot;"));
  EXPECT_THAT(xml, Not(HasSubstr("\x1b")));
}

TEST(MarkdownReportTest, SummarizesAndFoldsDetailsAway) {
  const std::string text = MarkdownReport(OneOfEach(), Info());
  EXPECT_THAT(text, HasSubstr("## trainwreck: 1 of 4 cases passed, 1 skipped"));
  EXPECT_THAT(text, HasSubstr("| nan/lr-too-high\\[sgd\\] | pass | +0.3125 octaves | 3.25 |"));
  EXPECT_THAT(text, HasSubstr("<details open><summary>nan/lr-too-high\\[adamw\\]"));
  EXPECT_THAT(text, HasSubstr("a &lt; b &amp; \"c\" \\| \\`d\\`"));
  EXPECT_THAT(text, HasSubstr("repeat: trainwreck rerun out/"));
  EXPECT_THAT(text, HasSubstr("█"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(MarkdownReportTest, AFenceCannotBeClosedFromInside) {
  Verdict verdict = Failed();
  verdict.checks[0].message = "```\n# not a heading\n````";
  const std::string text = MarkdownReport({verdict}, Info());
  EXPECT_THAT(text, HasSubstr("`````text\n"));
}

TEST(MarkdownReportTest, StaysBelowTheLimitOfAStepSummary) {
  Verdict verdict = Failed();
  verdict.checks[0].message = std::string(100'000, 'x');
  const std::string text = MarkdownReport(std::vector<Verdict>(20, verdict), Info());
  EXPECT_LT(text.size(), std::size_t{1} << 20);
  EXPECT_THAT(text, HasSubstr("more cases are in verdicts.json"));
}

TEST(ReportTest, StepSummaryIsAppendedWhereGithubSays) {
  unsetenv("GITHUB_STEP_SUMMARY");
  EXPECT_FALSE(AppendStepSummary({Passed()}, Info()));
  const std::string path = TempFile("summary.md");
  std::ofstream(path) << "before\n";
  setenv("GITHUB_STEP_SUMMARY", path.c_str(), 1);
  EXPECT_TRUE(AppendStepSummary({Passed()}, Info()));
  unsetenv("GITHUB_STEP_SUMMARY");
  EXPECT_EQ(ReadFile(path), "before\n" + MarkdownReport({Passed()}, Info()));
}

TEST(ReportTest, WritesWholeFilesAndLeavesNothingBeside) {
  const std::string folder = ::testing::TempDir() + "/report_whole";
  std::filesystem::remove_all(folder);
  const std::string path = folder + "/deep/verdicts.json";
  WriteReport(*FindReportFormat("json"), path, {Passed()}, Info());
  WriteReport(*FindReportFormat("json"), path, {Failed()}, Info());
  EXPECT_EQ(ReadFile(path), JsonReport({Failed()}, Info()));
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder + "/deep")) {
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(ReportTest, NamesThePathThatCannotBeWritten) {
  try {
    WriteReport(*FindReportFormat("json"), "/proc/nowhere/verdicts.json", {}, {});
    FAIL() << "no exception";
  } catch (const std::system_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/proc/nowhere/verdicts.json"));
  }
  EXPECT_THROW(WriteReport(*FindReportFormat("junit"), "/dev/full", {Failed()}, {}),
               std::system_error);
}

TEST(SparklineTest, ShowsTheShape) {
  const std::vector<double> values = {0, 1, 2, 3, 4, 5, 6, 7};
  const SparkScale scale = FitScale({&values});
  EXPECT_FALSE(scale.log);
  EXPECT_EQ(Sparkline(values, 8, true, scale), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline(values, 8, false, scale), "_.-=+*%#");
  EXPECT_EQ(Sparkline(values, 4, false, scale), ".=*#");
  EXPECT_EQ(Sparkline({}, 8, true, scale), "");
}

TEST(SparklineTest, MarksWhatIsNotFiniteAndNeverLosesIt) {
  const std::vector<double> values = {1, kNan, kInf, 2, 2, kNan, 2, 2};
  EXPECT_EQ(Sparkline(values, 8, false, FitScale({&values})), "_xx##x##");
  EXPECT_EQ(Sparkline(values, 4, false, FitScale({&values})), "xxx#");
  const std::vector<double> nothing = {kNan};
  EXPECT_EQ(Sparkline(nothing, 8, false, FitScale({&nothing})), "x");
}

TEST(SparklineTest, IsLogWhereValuesSpanADecade) {
  const std::vector<double> wide = {100, 10, 1};
  EXPECT_TRUE(FitScale({&wide}).log);
  EXPECT_EQ(Sparkline(wide, 3, false, FitScale({&wide})), "#+_");
  const std::vector<double> explosion = {4, 2, 1e30};
  EXPECT_EQ(FitScale({&explosion}).hi, 8);
  EXPECT_EQ(Sparkline(explosion, 3, false, FitScale({&explosion})), "-_#");
  const std::vector<double> constant = {3, 3};
  EXPECT_EQ(Sparkline(constant, 2, false, FitScale({&constant})), "++");
}

TEST(FormatMarginTest, HasSignAndUnit) {
  EXPECT_EQ(FormatMargin(10, formula::Unit::kStep), "+10 steps");
  EXPECT_EQ(FormatMargin(-0.312345, formula::Unit::kOctave), "-0.3123 octaves");
  EXPECT_EQ(FormatMargin(0.5, formula::Unit::kPlain), "+0.5");
  EXPECT_EQ(FormatMargin(kInf, formula::Unit::kPlain), "+inf");
}

std::string Console(const ConsoleOptions& options, const std::vector<Verdict>& verdicts) {
  std::ostringstream out;
  ConsoleReport console(out, options);
  console.Begin(Info(), static_cast<int>(verdicts.size()), 420);
  console.Progress(2, 10, 420);
  for (const Verdict& verdict : verdicts) console.Finished(verdict);
  console.End(verdicts, Info(), {"out/verdicts.json"});
  return out.str();
}

TEST(ConsoleTest, LinesOfCasesCanBeParsed) {
  std::istringstream lines(Console({}, OneOfEach()));
  std::vector<std::vector<std::string>> table;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#' || line[0] == ' ') continue;
    std::istringstream words(line);
    table.emplace_back(std::istream_iterator<std::string>(words),
                       std::istream_iterator<std::string>());
  }
  const std::vector<std::vector<std::string>> expected = {
      {"PASS", "-", "3.25", "+0.3125", "octaves", "nan/lr-too-high[sgd]"},
      {"FAIL", "symptom_absent", "3.25", "-", "-", "nan/lr-too-high[adamw]"},
      {"INCONCLUSIVE", "undecided", "3.25", "+0.3125", "octaves", "x/inconclusive"},
      {"ERROR", "timeout", "3.25", "+0.3125", "octaves", "x/error"},
      {"SKIP", "requires:device:cuda", "3.25", "+0.3125", "octaves", "x/skip"}};
  EXPECT_EQ(table, expected);
}

TEST(ConsoleTest, AFailureSaysWhatWasExpectedSeenWhereAndHowToRepeatIt) {
  const std::string text = Console({}, {Failed()});
  EXPECT_THAT(text, HasSubstr("scenarios/nan/lr-too-high.yaml:12:5: symptom_absent: 'blows_up' in "
                              "fault"));
  EXPECT_THAT(text, HasSubstr("formula   eventually[:60] loss > 3 and loss < 9"));
  EXPECT_THAT(text, HasSubstr("claim     expected true in 2 of 2 seeds"));
  EXPECT_THAT(text, HasSubstr("seen      seed 0: loss = nan (step 63)"));
  EXPECT_THAT(text, HasSubstr("margin    -3 steps"));
  EXPECT_THAT(text, HasSubstr("repeat    trainwreck rerun out/nan/lr-too-high/adamw/fault/0"));
  EXPECT_THAT(text, HasSubstr("evidence  /out/fault/0/evidence-rank0"));
  EXPECT_THAT(text, HasSubstr("remedy 'as_it_was' only undoes the fault"));
  EXPECT_THAT(text, HasSubstr("█xx"));
}

TEST(ConsoleTest, EscapesAndProgressAreForTerminalsOnly) {
  EXPECT_THAT(Console({}, OneOfEach()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Console({}, OneOfEach()), Not(HasSubstr("\r")));
  ConsoleOptions terminal;
  terminal.color = terminal.progress = true;
  const std::string text = Console(terminal, OneOfEach());
  EXPECT_THAT(text, HasSubstr("\x1b[32mPASS"));
  EXPECT_THAT(text, HasSubstr("\r\x1b[K# 10 of 420 runs done, 2 running, "));
  EXPECT_THAT(text, HasSubstr(" left\r\x1b[K"));
}

TEST(ConsoleTest, AsciiIsAsciiOnly) {
  ConsoleOptions options;
  options.unicode = false;
  options.verbose = true;
  for (char c : Console(options, {Passed()})) ASSERT_GE(c, 0);
}

TEST(ConsoleTest, PassingCasesShowTheirArmsWhenAsked) {
  EXPECT_THAT(Console({}, {Passed()}), Not(HasSubstr("control")));
  ConsoleOptions options;
  options.verbose = true;
  EXPECT_THAT(Console(options, {Passed()}), HasSubstr("control  control    ok"));
}

TEST(ConsoleTest, SaysWhereATargetComesFromThatNobodyNamed) {
  std::ostringstream out;
  RunInfo info;
  info.target = "trainer 1";
  ConsoleReport(out, {}).Begin(info, 1, 2);
  EXPECT_THAT(out.str(), HasSubstr("target: trainer 1  isolation"));
  info.target_note = "no trainwreck.yaml in /x or above";
  ConsoleReport(out, {}).Begin(info, 1, 2);
  EXPECT_THAT(out.str(), HasSubstr("target: trainer 1 (no trainwreck.yaml in /x or above)"));
}

TEST(ReportTest, TablesOfArmsHaveTheLastWordsOfABadEnd) {
  Verdict verdict = Failed();
  verdict.arms.back().ended = "seed 2: failed, rank 0 code 1: No module named 'x'";
  std::ostringstream out;
  ConsoleReport(out, {}).Finished(verdict);
  EXPECT_THAT(out.str(),
              HasSubstr("  ended: seed 2: failed, rank 0 code 1: No module named 'x'\n"));
  EXPECT_THAT(MarkdownReport({verdict}, {}), HasSubstr("- fault ended: seed 2: failed"));
  EXPECT_THAT(JunitReport({verdict}, {}), HasSubstr("fail; seed 2: failed, rank 0 code 1"));
  const std::string path = TempFile("ended.json");
  WriteReport(*FindReportFormat("json"), path, {verdict}, {});
  EXPECT_EQ(ReadJsonReport(path).verdicts[0].arms.back().ended, verdict.arms.back().ended);
}

TEST(ConsoleTest, NotesOfHealthyArmsAreShownAndThoseOfFaultyOnesWhenAsked) {
  Verdict verdict = Passed();
  verdict.notes = {{.arm = "control", .seed = 2, .seeds = 3, .step = 7, .text = "loss is odd"},
                   {.arm = "fault", .kind = ArmKind::kFault, .text = "loss is worse"}};
  std::ostringstream out;
  ConsoleReport(out, {}).Finished(verdict);
  EXPECT_THAT(out.str(),
              HasSubstr("    note: control seed 2, step 7 (and 2 more seeds): loss is odd\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr("loss is worse")));
  std::ostringstream verbose;
  ConsoleReport(verbose, {.verbose = true}).Finished(verdict);
  EXPECT_THAT(verbose.str(), HasSubstr("    note: fault seed 0: loss is worse\n"));
  EXPECT_THAT(MarkdownReport({verdict}, {}), HasSubstr("loss is odd"));
  const std::string path = TempFile("notes.json");
  std::ofstream(path) << JsonReport({verdict}, {});
  const Verdict read = ReadJsonReport(path).verdicts.at(0);
  ASSERT_EQ(read.notes.size(), 2u);
  EXPECT_EQ(read.notes[0].step, 7);
  EXPECT_EQ(read.notes[1].kind, ArmKind::kFault);
}

TEST(ReportTest, RemarksStandWithTheArms) {
  Verdict verdict = Failed();
  verdict.remarks = {"decoy 'decay' does nothing"};
  verdict.tolerated_seeds = {3};
  verdict.seen_verdict = VerdictKind::kFail;
  std::ostringstream out;
  ConsoleReport(out, {}).Finished(verdict);
  EXPECT_THAT(out.str(), HasSubstr("    note: decoy 'decay' does nothing\n"));
  EXPECT_THAT(MarkdownReport({verdict}, {}), HasSubstr("- decoy 'decay' does nothing\n"));
  const std::string path = TempFile("remarks.json");
  WriteReport(*FindReportFormat("json"), path, {verdict}, {});
  const Verdict read = ReadJsonReport(path).verdicts[0];
  EXPECT_EQ(read.remarks, verdict.remarks);
  EXPECT_EQ(read.tolerated_seeds, verdict.tolerated_seeds);
  EXPECT_EQ(read.seen_verdict, VerdictKind::kFail);
}

TEST(ConsoleTest, KnownLimitsAreCountedByWhatHappened) {
  Verdict verdict = Passed();
  verdict.expected_limit = true;
  verdict.seen_verdict = VerdictKind::kError;
  std::ostringstream out;
  ConsoleReport(out, {}).End({verdict, Passed()}, {}, {});
  EXPECT_THAT(out.str(), HasSubstr("2 cases: 2 pass (known limits: 1 error)"));
}

TEST(ConsoleTest, TheFooterCounts) {
  EXPECT_THAT(Console({}, OneOfEach()),
              HasSubstr("# 5 cases: 1 pass, 1 fail, 1 inconclusive, 1 error, 1 skip; 420 runs, "
                        "wall 48.1 s, cpu 90.0 s\n# report: out/verdicts.json\n"));
  EXPECT_THAT(Console({}, {}), HasSubstr("nothing was executed"));
}

TEST(ConsoleTest, OptionsFollowTheEnvironment) {
  setenv("LC_ALL", "C", 1);
  EXPECT_FALSE(ConsoleOptions::ForStream(-1, ColorMode::kAuto).unicode);
  setenv("LC_ALL", "C.UTF-8", 1);
  const ConsoleOptions file = ConsoleOptions::ForStream(-1, ColorMode::kAuto);
  EXPECT_TRUE(file.unicode);
  EXPECT_FALSE(file.color);
  EXPECT_FALSE(file.progress);
  EXPECT_TRUE(ConsoleOptions::ForStream(-1, ColorMode::kAlways).color);
  EXPECT_FALSE(ConsoleOptions::ForStream(-1, ColorMode::kNever).color);
}

}  // namespace report_test
}  // namespace trainwreck
