// Pages of the reports in testdata/. tests/page_test.py opens them in a browser.
#include "harness/pages/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "harness/protocol/parse_json.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace pages_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHostile[] =
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"' onload=x <!-- \x1b[31m "
    "\u202egnp.exe \u2028 ]]>";

Json Sample(const std::string& name) {
  return ReadReport("harness/pages/testdata/" + name + ".json");
}

std::string BodyOf(const std::string& html) {
  const std::size_t begin = html.find("<body>");
  return html.substr(begin, html.find("<script nonce") - begin);
}

std::string Page(const Json& report) { return BodyOf(PageOf(report, "1.2.3")); }

// The numbers that a page states, with all their digits.
std::set<std::string> ValuesOf(const std::string& html) {
  std::set<std::string> values;
  const std::string mark = "<data value=\"";
  for (std::size_t at = html.find(mark); at != std::string::npos; at = html.find(mark, at)) {
    at += mark.size();
    values.insert(html.substr(at, html.find('"', at) - at));
  }
  return values;
}

// The JSON of a chart.
Json DataOf(const std::string& html, const std::string& id) {
  const std::string mark = "<script type=application/json id=" + id + ">";
  const std::size_t begin = html.find(mark);
  if (begin == std::string::npos) return nullptr;
  const std::size_t from = begin + mark.size();
  return ParseJson(html.substr(from, html.find("</script>", from) - from));
}

void ExpectValues(const std::string& html, const std::vector<Json>& numbers) {
  const std::set<std::string> values = ValuesOf(html);
  for (const Json& number : numbers) EXPECT_THAT(values, Contains(number.dump()));
}

const std::vector<std::string>& Samples() {
  static const auto* names = new std::vector<std::string>{
      "bisect", "checkup", "comparison", "dose", "history", "lr-range", "matrix"};
  return *names;
}

TEST(PagesTest, ComparisonSaysWhatChangedAndWhy) {
  const Json report = Sample("comparison");
  const std::string html = Page(report);
  EXPECT_THAT(html, HasSubstr("<h1>trainwreck compare: 1 verdict and 1 margin got worse</h1>"));
  for (const Json& margin : report.at("margins")) {
    ExpectValues(html, {margin.at("median_a")});
    if (margin.at("shift").is_object()) {
      ExpectValues(html, {margin["shift"]["estimate"], margin["shift"]["lo"]});
    }
  }
  ExpectValues(html, {report["margins"][0]["median_b"], report["margins"][0]["adjusted_p"],
                      report["margins"][0]["noise"], report["speed"][0]["step_time"]["ratio"]});
  const std::size_t why = html.find("What changed, and why it counts");
  for (const char* said :
       {"verdict pass → fail/control_unhealthy; possible cause: code",
        "<li>&#39;learns&#39; in control: 5 of 5 seeds",
        "no longer checks &#39;stays_finite&#39; in control",
        "other bits in control: in 3 of 5 seeds, first between steps 3 and 4; seed 3: completed",
        "at most 0.05; the shift is not shown to be below 2 standard",
        "1 margin is unknown, see the case: at most 7 more seeds", "nan/gone</b>: only A",
        "slower: "}) {
    EXPECT_NE(html.find(said, why), std::string::npos) << said;
  }
  EXPECT_THAT(html, HasSubstr("same: every common seed has the same value"));
  EXPECT_THAT(html, HasSubstr("only shown: it depends on the load of the machine"));
  // Each case has its gravest change, the gravest case first.
  EXPECT_LT(html.find("data-verdict=\"worse\" data-name=\"nan/mine\""),
            html.find("data-verdict=\"unknown\" data-name=\"nan/other\""));
  EXPECT_THAT(html, HasSubstr("data-verdict=\"the same\" data-name=\"nan/quiet\""));
}

// Folders of two sides with a picture each.
struct TwoSides {
  TwoSides() {
    root = std::filesystem::path(::testing::TempDir()) / "two_sides";
    std::filesystem::remove_all(root);
    for (const char* side : {"a", "b"}) std::filesystem::create_directories(root / side);
  }
  void Put(const std::string& side, const std::string& lines) const {
    std::ofstream(root / side / "pictures.jsonl") << lines;
  }
  std::string Page() const {
    Json report = Sample("comparison");
    report["a"]["output_dir"] = (root / "a").string();
    report["b"]["output_dir"] = (root / "b").string();
    return pages_test::Page(report);
  }
  std::filesystem::path root;
};

std::string PictureLine(const std::string& name, double loss) {
  const Json curve = {0, Json::array(), {2, loss}};
  const Json run = {{"seed", 0}, {"curves", {{"loss", curve}}}};
  const Json arm = {{"arm", "control"}, {"kind", "control"}, {"runs", {run}}, {"command", "x"}};
  return Json({{"case", name}, {"steps", 9}, {"arms", {arm}}, {"log", {"loss"}}}).dump() + "\n";
}

TEST(PagesTest, ComparisonLaysTheCurvesOfBothSidesOverEachOther) {
  TwoSides sides;
  sides.Put("a", PictureLine("nan/mine", 1) + PictureLine("nan/other", 1));
  sides.Put("b", "damaged\n" + PictureLine("nan/mine", 0.5));
  const std::string html = sides.Page();
  const Json data = DataOf(html, "d0");
  ASSERT_TRUE(data.is_object());
  const Json& picture = data["picture"];
  EXPECT_EQ(picture["case"], "nan/mine");
  ASSERT_EQ(picture["arms"].size(), 2u);
  EXPECT_EQ(picture["arms"][0]["arm"], "A: control");
  EXPECT_EQ(picture["arms"][1]["arm"], "B: control");
  EXPECT_EQ(picture["arms"][1]["kind"], "b");
  EXPECT_EQ(picture["arms"][1]["runs"][0]["curves"]["loss"][2], Json({2, 0.5}));
  EXPECT_EQ(picture["shown"], Json({"A: control", "B: control"}));
  EXPECT_EQ(data["checks"][0][1], "B: control");
  // Of the other cases a side has no curves.
  EXPECT_TRUE(DataOf(html, "d1").is_null());
  EXPECT_THAT(html, HasSubstr("The curves of this case are not in this file."));
}

TEST(PagesTest, ComparisonSaysThatCurvesAreMissing) {
  TwoSides sides;
  sides.Put("a", PictureLine("nan/mine", 1));
  EXPECT_THAT(sides.Page(), HasSubstr("Some curves are not shown: there is no " +
                                      (sides.root / "b" / "pictures.jsonl").string()));
}

TEST(PagesTest, ComparisonStaysBounded) {
  TwoSides sides;
  // Three cases of 1 MB on each side: there is room for two, and the gravest have it.
  Json line = ParseJson(PictureLine("nan/mine", 1));
  Json& values = line["arms"][0]["runs"][0]["curves"]["loss"][2];
  for (int i = 0; i < 150'000; ++i) values.push_back(1.2345);
  std::string lines;
  for (const char* name : {"nan/quiet", "nan/other", "nan/mine"}) {
    line["case"] = name;
    lines += line.dump() + "\n";
  }
  sides.Put("a", lines);
  sides.Put("b", lines);
  const std::string html = sides.Page();
  EXPECT_LE(html.size(), 6'000'000u);
  EXPECT_TRUE(DataOf(html, "d0").is_object());
  EXPECT_TRUE(DataOf(html, "d1").is_object());
  EXPECT_TRUE(DataOf(html, "d2").is_null());
  EXPECT_THAT(html, HasSubstr("the curves of 1 case have no room here"));
}

TEST(PagesTest, ComparisonOfAHundredCasesIsBelowEightMegabytes) {
  TwoSides sides;
  Json report = Sample("comparison"), line = ParseJson(PictureLine("x", 1));
  const Json margin = report["margins"][0];
  Json& values = line["arms"][0]["runs"][0]["curves"]["loss"][2];
  for (int i = 0; i < 5000; ++i) values.push_back(1.2345);  // 4 MB on each side
  report["margins"] = Json::array();
  std::string lines;
  for (int i = 0; i < 100; ++i) {
    line["case"] = "family/some-scenario-" + std::to_string(i);
    lines += line.dump() + "\n";
    for (int check = 0; check < 32; ++check) {
      report["margins"].push_back(margin);
      report["margins"].back()["case"] = line["case"];
      report["margins"].back()["formula"] = std::string(100, 'x');
    }
  }
  for (const char* side : {"a", "b"}) {
    sides.Put(side, lines);
    report[side]["output_dir"] = (sides.root / side).string();
  }
  const std::string html = Page(report);
  EXPECT_LE(html.size(), 8'000'000u);
  EXPECT_GE(html.size(), 6'000'000u);  // the room is used
  EXPECT_THAT(html, HasSubstr("cases have no room here"));
}

TEST(PagesTest, MatrixHasASignForEachCell) {
  const Json report = Sample("matrix");
  const std::string html = Page(report);
  EXPECT_THAT(html, HasSubstr("<td class=\"all own alarm\" data-n=\"5 0 0 1 3 0\">●!</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"none\" data-n=\"0 4 1 0 4 0\">·</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"unknown\" data-n=\"0 0 5 0 0 4\">–</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"some own\" data-n=\"3 2 0 0 4 0\">◐</td>"));
  EXPECT_THAT(html, HasSubstr("1 of 8 control runs show a symptom"));
  EXPECT_THAT(html, HasSubstr("nan/mine and slow/other (a symptom of one cannot be read"));
  EXPECT_THAT(html, HasSubstr("nan/gpu</b>: requires:device:cuda"));
  ExpectValues(html, {report["false_positives"]["upper_bound_95"]});
}

TEST(PagesTest, CheckupHasBitsAndEvidence) {
  const Json report = Sample("checkup");
  const std::string html = Page(report);
  EXPECT_THAT(html, HasSubstr("nan/mine looks like nan/mine"));
  ExpectValues(html, {report["named"][0]["bits"], report["named"][1]["bits"],
                      report["named"][0]["evidence"][0]["in_row"],
                      report["named"][0]["evidence"][0]["overall"]});
  EXPECT_THAT(html, HasSubstr("✗ false</td><td>the loss stays finite"));
  EXPECT_THAT(html, HasSubstr("lower_rate (optimizer.lr x 0.1)"));
  EXPECT_THAT(html, HasSubstr("trainwreck run nan/mine"));
  Json healthy = report;
  healthy["healthy"] = true;
  EXPECT_THAT(Page(healthy), HasSubstr("nan/mine looks healthy"));
}

TEST(PagesTest, LrRangeDrawsTheLossOverTheRate) {
  const Json report = Sample("lr-range");
  const std::string html = Page(report);
  for (const Json& point : report["points"]) {
    ExpectValues(html, {point["rate"], point["start"]});
    if (!point["end"].is_null()) ExpectValues(html, {point["end"]});
  }
  const Json spec = DataOf(html, "data-rates");
  EXPECT_EQ(spec["lines"][0]["points"][1], Json({0.01, 0.4375}));
  EXPECT_EQ(spec["lines"][0]["points"][4], Json({10.0, "inf"}));
  EXPECT_EQ(spec["bands"][0]["to"], 0.1);
  EXPECT_EQ(spec["marks"][1]["x"], report["suggested"]);
  EXPECT_THAT(html, HasSubstr("✗ diverged"));
  Json lost = report;
  for (const char* key : {"own_rate_is", "advice"}) lost.erase(key);
  for (const char* key : {"best", "steepest", "largest_stable", "suggested"}) lost[key] = nullptr;
  lost["plateau"] = {nullptr, nullptr};
  EXPECT_THAT(Page(lost), HasSubstr("no rate learns"));
}

TEST(PagesTest, DoseDrawsAResponseForEachQuestion) {
  const Json report = Sample("dose");
  const std::string html = Page(report);
  for (const Json& answer : report["answers"]) {
    for (const Json& look : answer["looks"]) ExpectValues(html, {look["dose"], look["runs"]});
  }
  ExpectValues(html, {report["answers"][0]["confidence"]});
  const Json spec = DataOf(html, "data-dose0");
  EXPECT_EQ(spec["lines"][0]["points"][1], Json({2.0, 0.125}));
  EXPECT_EQ(spec["marks"][0]["x"], 4.0);
  // Wilson's interval of 1 of 8.
  EXPECT_NEAR(spec["lines"][0]["ranges"][1][1].get<double>(), 0.0224, 1e-3);
  EXPECT_NEAR(spec["lines"][0]["ranges"][1][2].get<double>(), 0.4709, 1e-3);
  EXPECT_EQ(DataOf(html, "data-dose1")["bands"][0]["from"], 4.0);
  EXPECT_THAT(html, HasSubstr("none: it always works"));
}

TEST(PagesTest, HistoryDrawsMarginsTimeAndMemoryWithTheCommitThatMovedThem) {
  const Json report = Sample("history");
  const std::string html = Page(report);
  for (const Json& point : report["courses"][0]["points"]) {
    ExpectValues(html, {point["margins"][0]["median"], point["margins"][0]["least"],
                        point["peak_memory_bytes"]});
  }
  const Json margins = DataOf(html, "data-course0-0");
  EXPECT_EQ(margins["y"]["name"], "margin (octaves)");
  EXPECT_EQ(margins["lines"][0]["points"][2], Json({2, -0.5}));
  EXPECT_EQ(margins["marks"], Json::array({{{"x", 2}, {"name", "cccccccc"}}}));
  EXPECT_TRUE(DataOf(html, "data-course0-1")["marks"].empty());  // of another unit
  EXPECT_EQ(DataOf(html, "data-course0-1")["lines"][0]["ranges"][0], Json({0, 10, "inf"}));
  const Json time = DataOf(html, "data-course0-2");
  EXPECT_EQ(time["lines"][0]["points"], Json({{0, 1.5}, {1, 2.5}}));
  EXPECT_EQ(time["marks"][0]["x"], 1);
  EXPECT_EQ(DataOf(html, "data-course0-3")["lines"][0]["points"].size(), 3u);
  EXPECT_THAT(html, HasSubstr("✗ cccccccc</td><td>3 → 4"));
  EXPECT_THAT(html, HasSubstr("✗ 2 moves to the worse"));
}

TEST(PagesTest, BisectDrawsTheSearch) {
  const Json report = Sample("bisect");
  const std::string html = Page(report);
  ExpectValues(html, {report["confidence"], report["rates"]["before"], report["rates"]["after"]});
  for (const Json& commit : report["commits"]) ExpectValues(html, {commit["posterior"]});
  EXPECT_THAT(html, HasSubstr("the culprit is 33333333"));
  EXPECT_THAT(html, HasSubstr("<title>run 4, seed 3: failed</title>"));
  EXPECT_THAT(html, HasSubstr("opacity=0.97"));  // 0.12 + 0.88 x 0.9712
  EXPECT_THAT(html, HasSubstr("<td>it does not build</td>"));
  EXPECT_EQ(DataOf(html, "data-confidence")["lines"][0]["points"][4], Json({5, 0.9712}));
  EXPECT_THAT(html, HasSubstr("&#39;learns&#39; in control"));
}

TEST(PagesTest, BisectOfManyCommitsAndRunsStaysBounded) {
  Json report = Sample("bisect");
  const Json commit = report["commits"][1], run = report["trail"][0];
  report["commits"] = Json::array();
  report["trail"] = Json::array();
  for (int i = 0; i < 500; ++i) report["commits"].push_back(commit);
  for (int i = 0; i < 400; ++i) {
    report["trail"].push_back(run);
    report["trail"].back()["posterior"] = std::vector<double>(500, 0.002);
    report["trail"].back()["commit"] = i % 500;
  }
  const std::string html = Page(report);
  EXPECT_LE(html.size(), 2'500'000u);
  EXPECT_THAT(html, HasSubstr("440 more are only in the table below."));
}

// Every text, and every free key, is hostile.
Json Poisoned(const Json& json) {
  if (json.is_string()) return DecodeNumber(json) ? json : Json(kHostile);
  if (!json.is_structured()) return json;
  Json poisoned = json;
  for (auto& [key, value] : poisoned.items()) value = Poisoned(value);
  for (const char* free : {"environment", "skipped", "final_losses"}) {
    if (!poisoned.is_object() || !poisoned.contains(free) || !poisoned[free].is_object()) continue;
    const Json first = poisoned[free].front();
    poisoned[free] = {{kHostile, first}};
  }
  return poisoned;
}

TEST(PagesTest, NothingThatIsForeignBecomesMarkup) {
  for (const std::string& name : Samples()) {
    const Json sample = Sample(name);
    Json report = Poisoned(sample);
    report["schema"] = sample["schema"];
    const std::string body = Page(report);
    EXPECT_THAT(body, HasSubstr("&lt;img src=x")) << name;
    for (const char* mark : {"<script>", "<img", "<!--", "\u202e", "\x1b"}) {
      EXPECT_THAT(body, Not(HasSubstr(mark))) << name;
    }
  }
}

// Calls `use` with each copy of `json` that lacks one value or has another in its place.
void ForEachDamaged(const Json& whole, const Json::json_pointer& at,
                    const std::function<void(const Json&)>& use) {
  const Json part = whole.at(at);
  if (!part.is_structured()) return;
  for (const auto& [key, value] : part.items()) {
    const Json::json_pointer child =
        part.is_array() ? at / static_cast<std::size_t>(std::stoul(key)) : at / key;
    for (const Json& other : {Json(), Json("text"), Json(7), Json::array(), Json::object()}) {
      Json damaged = whole;
      damaged[child] = other;
      use(damaged);
    }
    ForEachDamaged(whole, child, use);
  }
}

TEST(PagesTest, ADamagedReportIsAnErrorAndNoCrash) {
  int refused = 0, drawn = 0;
  for (const std::string& name : Samples()) {
    ForEachDamaged(Sample(name), Json::json_pointer(), [&](const Json& damaged) {
      try {
        PageOf(damaged, "");
        ++drawn;
      } catch (const PageError&) {
        ++refused;
      }
    });
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(drawn, 100);
}

TEST(PagesTest, SaysWhichReportsHavePages) {
  try {
    PageOf({{"schema", "trainwreck/keys"}}, "");
    FAIL();
  } catch (const PageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("trainwreck/comparison"));
  }
  EXPECT_TRUE(HasPage("trainwreck/matrix"));
  EXPECT_FALSE(HasPage("trainwreck/keys"));
}

}  // namespace pages_test
}  // namespace trainwreck
