#include "harness/bisect/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <limits>
#include <utility>
#include <vector>

#include "harness/session/session.h"

namespace trainwreck {

namespace fs = std::filesystem;

std::string BisectPercent(double p) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * p);
  return text;
}

std::string ShortId(const std::string& id) {
  constexpr std::size_t kHash = 40, kShort = 7;
  const bool is_hash =
      id.size() >= kHash && id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_hash ? id.substr(0, kShort) : id;
}

namespace {

// Four digits: a page draws it.
double Rounded(double p) { return std::round(p * 1e4) / 1e4; }

// "passed", "failed", or "unusable": the run told nothing.
const char* SeenIn(const SeedResult& result, const Bisection& bisection) {
  if (!result.error.empty() || !bisection.OtherFailure(result).empty()) return "unusable";
  if (result.margin) return "margin";
  if (!result.failures.empty()) return "failed";
  return result.undecided.empty() ? "passed" : "unusable";
}

// Of many runs, some keep only what they saw: at most about 200,000 numbers stay.
void ThinOut(Json& trail) {
  constexpr std::size_t kMostNumbers = 200'000;
  if (trail.empty()) return;
  const std::size_t kept = std::max<std::size_t>(kMostNumbers / trail[0]["posterior"].size(), 2);
  const std::size_t stride = (trail.size() + kept - 1) / kept;
  for (std::size_t i = 0; i + 1 < trail.size(); ++i) {
    if (i % stride != 0) trail[i].erase("posterior");
  }
}

}  // namespace

Terms::Terms(const BisectOptions& options)
    : passes(options.term_old.empty() ? "pass" : options.term_old),
      fails(options.term_new.empty() ? "fail" : options.term_new),
      old_end(options.term_old.empty() ? "good" : options.term_old),
      new_end(options.term_new.empty() ? "bad" : options.term_new) {}

bool Conclusion::IsUndecided() const {
  const int last = static_cast<int>(bisection.commits().size()) - 1;
  return step.kind == Step::kUndecided && !bisection.IsSkipped(0) && !bisection.IsSkipped(last);
}

int Conclusion::ExitStatus() const {
  if (IsFound()) return kExitPassed;
  return IsUndecided() ? kExitInconclusive : kExitFailed;
}

std::string Conclusion::Name(int commit) const {
  return lineage.Describe(bisection.commits()[commit].id);
}

std::string Conclusion::Why() const {
  if (IsUndecided()) {
    const Search& search = bisection.search();
    return "undecided: --max-runs is reached; likeliest " + Name(search.suspects().front()) + ", " +
           BisectPercent(search.confidence());
  }
  std::string why = bisection.WhyNoChange();
  // What a shell says of a command that is not there, or is none.
  int failed = 0, not_started = 0;
  for (const SeedResult& result : bisection.results()) {
    failed += !result.failures.empty();
    not_started += result.status == 126 || result.status == 127;
  }
  if (failed > 0 && not_started == failed) {
    why += "; its status was always " + std::to_string(bisection.results().front().status) +
           ", as of a command that is not there: --test runs in the commit's worktree, so a file "
           "that the commits lack needs its full path";
  }
  return why;
}

std::string Conclusion::Tallied(int commit) const {
  const Bisection::Tally tally = bisection.TallyOf(commit);
  const int total = tally.passed + tally.failed;
  if (!bisection.sought()) return std::to_string(total) + " runs";
  const bool has_term = !options.term_new.empty();
  return std::to_string(tally.failed) + " of " + std::to_string(total) +
         (has_term ? " runs: " + options.term_new : " runs fail");
}

double Conclusion::MiddleMargin(bool of_bad) const {
  const Search& search = bisection.search();
  std::vector<double> margins;
  for (int commit = 0; commit <= search.history().size(); ++commit) {
    if (search.history().IsBad(search.suspects().front(), commit) != of_bad) continue;
    const std::vector<double> its = bisection.MarginsOf(commit);
    margins.insert(margins.end(), its.begin(), its.end());
  }
  if (margins.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = margins.begin() + static_cast<std::ptrdiff_t>(margins.size() / 2);
  std::nth_element(margins.begin(), middle, margins.end());
  return *middle;
}

void Conclusion::PrintFound() const {
  const Search& search = bisection.search();
  const auto& suspects = search.suspects();
  if (suspects.size() > 1) {
    std::cout << "one of these, those between cannot be tested\n";
  } else {
    const bool is_plain = options.term_new.empty() && !IsOfReleases();
    std::cout << "culprit"
              << (is_plain ? ""
                           : std::string(lineage.is_backwards() ? ": the last " : ": the first ") +
                                 Terms(options).new_end + " " + lineage.noun())
              << "\n";
  }
  for (int suspect : suspects) {
    const std::string& id = bisection.commits()[suspect].id;
    std::cout << "  " << (IsOfReleases() ? "" : id + " ") << lineage.Subject(id) << "\n";
  }
  if (IsOfReleases()) {
    const bool is_backwards = lineage.is_backwards();
    std::cout << (is_backwards ? "last bad   " : "first bad  ") << Name(search.Witness()) << "\n"
              << (is_backwards ? "good from  " : "last good  ")
              << Name(search.WitnessParents().front()) << "\n";
  }
  std::cout << "confidence " << BisectPercent(search.confidence()) << "\n";
  if (bisection.sought() && !bisection.sought()->check.empty()) {
    std::cout << "failure    " << bisection.sought()->Text() << "\n";
  }
  std::cout << "with it    " << Tallied(search.Witness()) << "\n";
  for (int parent : search.WitnessParents()) {
    std::cout << "before it  " << Tallied(parent) << " (" << Name(parent) << ")\n";
  }
  const bool has_metric = !options.metric.empty();
  std::cout << (has_metric ? "margins    " : "rates      ")
            << BisectNumber(has_metric ? MiddleMargin(false) : search.GoodLevel()) << " before, "
            << BisectNumber(has_metric ? MiddleMargin(true) : search.BadLevel()) << " after"
            << (has_metric ? " (the middle ones)" : "") << "\n";
}

// What was left out of the search. Of many, the JSON has all.
void Conclusion::PrintSkipped() const {
  constexpr std::size_t kMost = 8;
  const auto& reasons = bisection.skip_reasons();
  std::size_t count = 0;
  for (const auto& [commit, why] : reasons) {
    if (++count > kMost) break;
    std::cout << "skipped    " << Name(commit) << ": " << why << "\n";
  }
  if (reasons.size() > kMost) std::cout << "skipped    " << reasons.size() - kMost << " more\n";
}

void Conclusion::Print() const {
  const Search& search = bisection.search();
  const int candidates = search.history().size();
  if (IsFound()) {
    PrintFound();
  } else {
    std::cout << Why() << "\n";
  }
  PrintSkipped();
  std::cout << "cost       " << bisection.runs() << " runs, " << bisection.builds()
            << (IsOfReleases() ? " installations, " : " builds, ")
            << BisectNumber(bisection.seconds()) << " s; an oracle needs "
            << BisectNumber(std::ceil(std::log2(std::max(candidates, 1)))) << " looks";
  if (IsFound()) {
    std::cout << ", through this noise "
              << BisectNumber(std::log2(std::max(candidates, 1)) / search.BitsPerRun()) << " runs";
  }
  std::cout << "\nlog        " << log << "\n";
  if (IsFound() && search.suspects().size() == 1) {
    const CommitList& commits = bisection.commits();
    std::cout << lineage.Difference(commits[search.WitnessParents().front()].id,
                                    commits[search.suspects().front()].id)
              << "\n";
  }
}

Json Conclusion::CommitJson(int commit) const {
  const std::string& id = bisection.commits()[commit].id;
  return {{"id", id}, {"subject", lineage.Subject(id)}};
}

Json Conclusion::EndJson(int commit) const {
  Json json = CommitJson(commit);
  const Bisection::Tally tally = bisection.TallyOf(commit);
  json["runs"] = tally.total();
  if (!options.metric.empty()) {
    json["margins"] = Json::array();
    for (double margin : bisection.MarginsOf(commit)) {
      json["margins"].push_back(EncodeNumber(margin));
    }
  } else {
    json["passed"] = tally.passed;
    json["failed"] = tally.failed;
  }
  return json;
}

Json Conclusion::ToJson() const {
  const Search& search = bisection.search();
  const int last = search.history().size();
  Json json = {{"schema", "trainwreck/bisect-result"},
               {"version", 1},
               {"of", lineage.noun()},
               {"answer", !IsFound()                      ? IsUndecided() ? "undecided" : "none"
                          : search.suspects().size() == 1 ? "culprit"
                                                          : "range"},
               {"culprits", Json::array()},
               {"confidence", nullptr},
               {"why", nullptr},
               {"failure", nullptr},
               {"good_end", EndJson(0)},
               {"bad_end", EndJson(last)},
               {"candidates", last},
               {"skipped", Json::array()},
               {"runs", bisection.runs()},
               {"builds", bisection.builds()},
               {"seconds", bisection.seconds()},
               {"terms", {Terms(options).old_end, Terms(options).new_end}},
               {"log", log}};
  for (const auto& [commit, why] : bisection.skip_reasons()) {
    json["skipped"].push_back({{"id", bisection.commits()[commit].id}, {"why", why}});
  }
  if (const auto& sought = bisection.sought(); sought && !sought->check.empty()) {
    json["failure"] = {
        {"class", sought->failure_class}, {"check", sought->check}, {"arm", sought->arm}};
  }
  if (!IsFound()) {
    json["why"] = Why();
    return json;
  }
  json["confidence"] = search.confidence();
  for (int suspect : search.suspects()) json["culprits"].push_back(CommitJson(suspect));
  json["with_it"] = EndJson(search.Witness());
  json["before_it"] = Json::array();
  for (int parent : search.WitnessParents()) json["before_it"].push_back(EndJson(parent));
  if (IsOfReleases()) {
    json["package"] = options.versions.front();
    const bool is_backwards = lineage.is_backwards();
    json[is_backwards ? "last_bad" : "first_bad"] = bisection.commits()[search.Witness()].id;
    json[is_backwards ? "first_good" : "last_good"] =
        bisection.commits()[search.WitnessParents().front()].id;
  }
  if (options.metric.empty()) {
    json["rates"] = {{"before", search.GoodLevel()}, {"after", search.BadLevel()}};
  }
  return json;
}

Json Conclusion::TestedCommits() const {
  const Search& search = bisection.search();
  Json commits = Json::array();
  for (int commit = 0; commit <= search.history().size(); ++commit) {
    Json one = EndJson(commit);
    one["posterior"] = Rounded(search.posterior()[commit]);
    if (commit == 0) one["posterior"] = 0;  // [0] is "no culprit at all"
    const auto why = bisection.skip_reasons().find(commit);
    one["skipped"] = why == bisection.skip_reasons().end() ? Json() : Json(why->second);
    commits.push_back(std::move(one));
  }
  return commits;
}

Json Conclusion::WithTrail() const {
  Json json = ToJson();
  json["commits"] = TestedCommits();
  json["no_change"] = Rounded(bisection.search().posterior()[0]);
  SearchOptions how;
  how.confidence = options.confidence;
  how.max_runs = options.max_runs;
  Bisection again(bisection.commits(), {how, !options.metric.empty(), options.no_flakes});
  json["trail"] = Json::array();
  for (const Json& record : Journal::Load(log)) {
    again.Apply(record);
    if (record.at("t") != "run") continue;
    const Search& search = again.search();
    const SeedResult& result = again.results().back();
    Json posterior = Json::array();
    for (double p : search.posterior()) posterior.push_back(Rounded(p));
    posterior[0] = 0;
    json["trail"].push_back({{"commit", result.commit},
                             {"seed", result.seed},
                             {"saw", SeenIn(result, again)},
                             {"margin", result.margin ? EncodeNumber(*result.margin) : Json()},
                             {"likeliest", search.suspects().front()},
                             {"confidence", search.confidence()},
                             {"no_change", Rounded(search.posterior()[0])},
                             {"posterior", std::move(posterior)}});
  }
  ThinOut(json["trail"]);
  return json;
}

int ReplayBisection(const std::string& path) {
  const std::vector<Json> records = [&] {
    if (!fs::is_regular_file(path)) throw UsageError("--replay: there is no file '" + path + "'");
    return Journal::Load(path);
  }();
  if (records.empty() || records.front().value("schema", "") != kBisectLogSchema) {
    throw UsageError("--replay: '" + path + "' is no log of a bisection");
  }
  const Json& header = records.front();
  if (header.at("version") != kBisectLogVersion) {
    throw UsageError("--replay: '" + path + "' has version " + header.at("version").dump() +
                     ", this trainwreck reads " + std::to_string(kBisectLogVersion));
  }
  CommitList commits;
  for (const Json& commit : header.at("commits")) {
    commits.push_back({commit.at("id"), commit.at("tree"), commit.at("parents")});
  }
  SearchOptions search;
  search.confidence = header.at("confidence");
  search.max_runs = header.at("max_runs");
  Bisection bisection(commits, {search, !header.at("metric").get<std::string>().empty(),
                                header.value("no_flakes", false)});
  for (const Json& record : records) {
    bisection.Apply(record);
    if (record.at("t") != "run") continue;
    const Search& now = bisection.search();
    std::cout << "run " << bisection.runs() << "  " << header.value("of", "commit") << " "
              << ShortId(commits[record.at("commit").get<int>()].id) << "  seed "
              << record.at("seed") << "  likeliest " << ShortId(commits[now.suspects().front()].id)
              << " " << BisectPercent(now.confidence()) << ", no change "
              << BisectPercent(now.posterior()[0]) << "\n";
  }
  const Step step = bisection.Next(std::vector<bool>(commits.size(), true));
  if (step.kind == Step::kCulprit) {
    for (int suspect : bisection.search().suspects()) {
      std::cout << "culprit " << commits[suspect].id << "\n";
    }
    return kExitPassed;
  }
  std::cout << (step.kind == Step::kNoChange ? bisection.WhyNoChange() : "not decided yet") << "\n";
  return step.kind == Step::kNoChange ? kExitFailed : kExitInconclusive;
}

}  // namespace trainwreck
