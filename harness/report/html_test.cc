// report.html as text. tests/page_test.py opens one in a browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/judge/test_support.h"
#include "harness/picture/picture.h"
#include "harness/report/html_page.h"
#include "harness/report/html_text.h"
#include "harness/report/report.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace html_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] =
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"' onload=x <!-- \x1b[31m "
    "\u202egnp.exe \u2028 \xff\xfe ]]>";

TEST(HtmlTest, TextIsNoMarkup) {
  const std::string html = Html(kHostile);
  for (const char* mark : {"<", ">", "\"", "'", "\x1b", "\u202e", "\xff"}) {
    EXPECT_THAT(html, Not(HasSubstr(mark))) << mark;
  }
  EXPECT_THAT(html, HasSubstr("\\u202egnp.exe"));  // shown, not obeyed
  EXPECT_EQ(Html("a & b"), "a &amp; b");
}

TEST(HtmlTest, JsonInAScriptEndsNoScriptAndIsTheSameJson) {
  const Json json = {{"</script>", "<!-- \u2028 \u202e"}};
  const std::string text = JsonInScript(json);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_EQ(Json::parse(text), json);
}

TEST(HtmlTest, DataOfChartsHasNamesAsTheyAreShown) {
  const std::string script = DataScript("d0", {{kHostile, {1, kHostile}}});
  const std::size_t begin = script.find('>') + 1;
  const Json json = Json::parse(script.substr(begin, script.rfind("</script>") - begin));
  EXPECT_EQ(json.begin().key(), CleanText(kHostile));
  EXPECT_EQ(json.front(), Json({1, CleanText(kHostile)}));
}

TEST(HtmlTest, StrengthIsHalfWayAtOneUnitAndKeepsTheSign) {
  EXPECT_EQ(MarginStrength(1, formula::Unit::kOctave), 0.5);
  EXPECT_EQ(MarginStrength(-10, formula::Unit::kStep), -0.5);
  EXPECT_EQ(MarginStrength(std::numeric_limits<double>::infinity(), formula::Unit::kStep), 1);
  EXPECT_LT(MarginStrength(0.2, formula::Unit::kOctave),
            MarginStrength(0.3, formula::Unit::kOctave));
}

TEST(HtmlTest, ABarHasItsLabelSeedsAndLeastMargin) {
  const std::string bar = MarginBar(-1, {-1, 1}, 2.0, formula::Unit::kOctave, "margin <");
  EXPECT_THAT(bar, HasSubstr("aria-label=\"margin &lt;\""));
  EXPECT_THAT(bar, HasSubstr("class=mn x=31 y=3 width=29 "));
  EXPECT_THAT(bar, HasSubstr("M31 1v10M89 1v10"));
  EXPECT_THAT(bar, HasSubstr("class=ml"));
}

std::string HtmlReport(const std::vector<Verdict>& verdicts, const RunInfo& info) {
  return FindReportFormat("html")->text(verdicts, info);
}

Verdict FailedVerdict() {
  trainwreck::testing::Bench bench;
  bench.In("fault", -1, trainwreck::testing::WithLoss(trainwreck::testing::LearningLoss(1)));
  Verdict verdict = bench.Judged();
  verdict.picture = PictureOf(bench.results, bench.target, {50'000});
  return verdict;
}

TEST(HtmlTest, SaysFirstWhatFailedAndWhyInWords) {
  const Verdict verdict = FailedVerdict();
  ASSERT_EQ(verdict.verdict, VerdictKind::kFail);
  const std::string html = HtmlReport({verdict}, {});
  EXPECT_THAT(html, HasSubstr("<h1>trainwreck: 1 of 1 cases did not pass</h1>"));
  const std::size_t why = html.find("What failed, and why");
  ASSERT_NE(why, std::string::npos);
  EXPECT_LT(why, html.find("Cases by family"));
  EXPECT_THAT(html.substr(why, 900), HasSubstr("symptom_absent"));
  EXPECT_THAT(html, HasSubstr("<tr class=broken><td>✗ fault<td>must hold<td>blows_up"));
  EXPECT_THAT(html, HasSubstr("<code>optimizer.lr</code><td><code>0.1</code>"));
  EXPECT_THAT(html, HasSubstr("MIT-licenced"));
  for (const char* from_outside : {"src=", "href=\"http", "url(http", "@import"}) {
    EXPECT_THAT(html.substr(0, html.find("<script nonce")), Not(HasSubstr(from_outside)));
  }
}

TEST(HtmlTest, NothingThatIsForeignBecomesMarkup) {
  Verdict verdict = FailedVerdict();
  for (std::string* text :
       {&verdict.case_name, &verdict.scenario, &verdict.title, &verdict.file, &verdict.reason}) {
    *text = kHostile;
  }
  verdict.remarks = {kHostile};
  verdict.notes.push_back({.arm = kHostile, .text = kHostile});
  for (ArmSummary& arm : verdict.arms) arm.arm = arm.note = arm.ended = kHostile;
  for (CheckResult& check : verdict.checks) {
    for (std::string* text : {&check.check, &check.arm, &check.formula, &check.message, &check.seen,
                              &check.place, &check.rerun_command}) {
      *text = kHostile;
    }
    check.suspects = {kHostile};
  }
  RunInfo info;
  info.command_line = info.target = info.host = info.version = info.commit = kHostile;
  for (const char* picture :
       {"", "{}", "[1", "{\"case\":1,\"arms\":[{\"arm\":\"</script>\"}, 3]}"}) {
    verdict.picture = picture;
    const std::string html = HtmlReport({verdict}, info);
    const std::size_t page = html.find("<body>");
    const std::string body = html.substr(page, html.find("<script nonce") - page);
    EXPECT_THAT(body, Not(HasSubstr("<script>"))) << picture;
    EXPECT_THAT(body, Not(HasSubstr("<img"))) << picture;
    EXPECT_THAT(body, Not(HasSubstr("<!--"))) << picture;
    EXPECT_THAT(html, Not(HasSubstr("\u202e")));
    EXPECT_THAT(html, Not(HasSubstr("\x1b")));
  }
}

// The suite of `cases` cases with 4 arms of `seeds` seeds and about 30 checks each.
std::string PageOf(int cases, int seeds = 8) {
  trainwreck::testing::Bench bench;
  bench.options.seeds = seeds;
  for (int i = 0; i < 6; ++i) {
    Check more = trainwreck::testing::MakeCheck(
        "symptom_" + std::to_string(i),
        "eventually[:" + std::to_string(i + 9) + "] nonfinite(loss)");
    bench.scenario().symptoms.push_back(more);
  }
  bench.meddle = [](const Run& run, RunResult& result) {
    std::mt19937 random(static_cast<unsigned>(run.seed));
    std::lognormal_distribution<double> wide(0, 2);
    for (int signal = 0; signal < 30; ++signal) {
      Series& series = result.trace.series[{"signal_" + std::to_string(signal), 0}];
      for (int step = 0; step < 200; ++step) series.Set(step, wide(random));
    }
  };
  Verdict verdict = bench.Judged();
  const int runs = 4 * seeds * cases;
  verdict.picture =
      PictureOf(bench.results, bench.target, {PictureBytesOfRun(runs, cases) * 4 * seeds});
  return HtmlReport(std::vector<Verdict>(cases, verdict), {});
}

TEST(HtmlTest, ThreeThousandRunsAreAtMostEightMegabytes) {
  const std::string html = PageOf(94);
  EXPECT_LE(html.size(), 8'000'000u);
  EXPECT_GE(html.size(), 3'000'000u);  // the room is used
}

TEST(HtmlTest, SixThousandRunsOfThreeHundredCasesAreAtMostEightMegabytes) {
  EXPECT_LE(PageOf(300, 5).size(), 8'000'000u);
}

TEST(HtmlTest, TwentyThousandRunsOfAHundredCasesAreAtMostEightMegabytes) {
  EXPECT_LE(PageOf(100, 50).size(), 8'000'000u);
}

TEST(HtmlTest, TwentyThousandRunsOfManyCasesStayBounded) {
  EXPECT_LE(PageOf(625).size(), 32'000'000u);
}

}  // namespace html_test
}  // namespace trainwreck
