#include "harness/bisect/bisection.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "harness/outcome/outcome.h"
#include "harness/protocol/parse_json.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

// So many runs of a commit that say nothing, and it counts as one that cannot be tested.
constexpr int kUnusableRuns = 3;
// Runs of each end before there is a model of the margins.
constexpr int kMarginLooks = 5;
// Runs of the bad end at most, for two failures that show whether their sizes are alike.
constexpr int kSizeLooks = 10;
// Before the first build is over; only its ratio to a run's cost matters.
constexpr double kUnknownBuildSeconds = 60;

CommitGraph HistoryOf(const CommitList& commits) {
  std::vector<std::vector<int>> parents;
  for (std::size_t i = 1; i < commits.size(); ++i) parents.push_back(commits[i].parents);
  return CommitGraph(parents);
}

constexpr const char* kSeesNan = "where that is a NaN, --metric 'never nonfinite(loss)' sees it";

const char* ToString(Mark mark) {
  switch (mark) {
    case Mark::kGood:
      return "good";
    case Mark::kBad:
      return "bad";
    case Mark::kSkip:
      return "skip";
  }
  return "";
}

Mark MarkFrom(const std::string& name) {
  for (Mark mark : {Mark::kGood, Mark::kBad, Mark::kSkip}) {
    if (name == ToString(mark)) return mark;
  }
  throw std::runtime_error("no mark is called '" + name + "'");
}

// Classes of runs that ended before they could show anything else.
bool IsEnd(const std::string& name) {
  const std::optional<FailureClass> end = FailureClass::Find(name);
  return end == FailureClass(FailureClass::kCrash) || end == FailureClass(FailureClass::kTimeout) ||
         end == FailureClass(FailureClass::kLeak);
}

}  // namespace

Bisection::Bisection(CommitList commits, BisectionOptions options)
    : commits_(std::move(commits)), options_(options) {
  Rebuild();
}

Json Bisection::LogBuild(const Commit& commit, int number, const Built& built) {
  Json json = {{"t", "build"},
               {"commit", number},
               {"id", commit.id},
               {"ok", built.ok},
               {"program", built.program},
               {"seconds", built.seconds},
               {"cached", built.from_cache}};
  if (!built.ok) json["why"] = built.why;
  return json;
}

Json Bisection::LogRun(const SeedResult& result) {
  Json json = {{"t", "run"},
               {"commit", result.commit},
               {"seed", result.seed},
               {"failures", ToJson(result.failures)},
               {"undecided", ToJson(result.undecided)},
               {"seconds", result.seconds}};
  if (result.margin) json["margin"] = EncodeNumber(*result.margin);
  if (!result.error.empty()) json["error"] = result.error;
  if (result.is_skip) json["skip"] = true;
  if (result.status != 0) json["status"] = result.status;
  return json;
}

Json Bisection::LogMark(const Commit& commit, int number, Mark mark) {
  return {{"t", "mark"}, {"commit", number}, {"id", commit.id}, {"as", ToString(mark)}};
}

void Bisection::Apply(const Json& record) {
  const std::string type = record.at("t");
  if (type != "build" && type != "run" && type != "mark") return;  // others are for people
  const int commit = record.at("commit");
  if (commit < 0 || commit >= static_cast<int>(commits_.size())) {
    throw std::runtime_error("no commit has the number " + std::to_string(commit));
  }
  if (type == "mark") return Apply(commit, MarkFrom(record.at("as")));
  seconds_ += record.at("seconds").get<double>();
  if (type == "build") {
    if (!record.at("cached").get<bool>()) {
      ++builds_;
      build_seconds_ += record.at("seconds").get<double>();
    }
    if (record.at("ok").get<bool>()) {
      Merge(commit, record.at("program"));
    } else {
      unbuilt_[commit] = skip_reasons_[commit] = record.value("why", "cannot be built");
      search_->Skip(commit);
    }
    return;
  }
  SeedResult result;
  result.commit = commit;
  result.seed = record.at("seed");
  result.failures = FailuresFromJson(record.at("failures"));
  result.undecided = FailuresFromJson(record.at("undecided"));
  result.error = record.value("error", "");
  result.status = record.value("status", 0);
  result.is_skip = record.value("skip", false);
  if (record.contains("margin")) result.margin = DecodeNumber(record.at("margin"));
  run_seconds_ += record.at("seconds").get<double>();
  Take(std::move(result));
}

void Bisection::Take(SeedResult result) {
  const bool may_tell = !options_.has_metric && result.commit == bad_end() &&
                        result.error.empty() && !result.failures.empty();
  results_.push_back(std::move(result));
  const SeedResult& last = results_.back();
  bool is_new = false;  // what earlier runs mean changes
  if (may_tell && !sought_) {
    sought_ = last.failures.front();  // what the bad end shows first is what is looked for
    is_new = true;
  }
  if (const Failure* failure = may_tell ? SoughtIn(last) : nullptr) {
    is_new = sought_sizes_.Add(failure->size) || is_new;
  }
  if (is_new) return Rebuild();
  Observe(last);
  if (options_.has_metric && IsTimeForModel()) Rebuild();
}

std::vector<double> Bisection::MarginsOf(int commit) const {
  std::vector<double> margins;
  for (const SeedResult& result : results_) {
    if (result.commit == commit && Read(result) != Reading::kUnusable) {
      margins.push_back(*result.margin);
    }
  }
  return margins;
}

std::vector<double> Bisection::AllMargins() const {
  std::vector<double> margins;
  for (const SeedResult& result : results_) {
    if (Read(result) != Reading::kUnusable) margins.push_back(*result.margin);
  }
  return margins;
}

// Until there is a model, and when there are half as many runs again since: the first few may not
// show how the ends differ. Nothing is concluded from a model that knows of no gap where the runs
// have one.
bool Bisection::IsTimeForModel() const {
  if (!has_model_)
    return std::min(MarginsOf(0).size(), MarginsOf(bad_end()).size()) >= kMarginLooks;
  const std::vector<double> all = AllMargins();
  return all.size() >= modelled_runs_ + modelled_runs_ / 2 ||
         (!has_gap_ && search_->Next().kind != Step::kRun && HaveClearGap(all));
}

// From all that was seen so far: what it means depends on what is looked for.
void Bisection::Rebuild() {
  NoiseModel model = FailureRates(options_.nothing_flakes);
  if (options_.has_metric) {
    const std::vector<double> good = MarginsOf(0);
    const std::vector<double> bad = MarginsOf(bad_end());
    std::vector<double> between;
    for (const SeedResult& result : results_) {
      const bool is_end = result.commit == 0 || result.commit == bad_end();
      if (!is_end && Read(result) != Reading::kUnusable) between.push_back(*result.margin);
    }
    has_model_ = std::min(good.size(), bad.size()) >= kMarginLooks;
    if (has_model_) model = Margins(good, bad, between);
    const std::vector<double> all = AllMargins();
    modelled_runs_ = has_model_ ? all.size() : 0;
    has_gap_ = has_model_ && HaveClearGap(all);
  }
  search_ = std::make_unique<Search>(HistoryOf(commits_), std::move(model), options_.search);
  const std::map<int, std::string> programs = std::exchange(programs_, {});
  for (const auto& [commit, program] : programs) Merge(commit, program);
  skip_reasons_ = unbuilt_;
  for (const auto& [commit, reason] : unbuilt_) search_->Skip(commit);
  for (const auto& [commit, mark] : marks_) Apply(commit, mark);
  for (const SeedResult& result : results_) Observe(result, /*refresh=*/false);
  search_->Refresh();
}

const Failure* Bisection::SoughtIn(const SeedResult& result) const {
  if (!sought_) return nullptr;
  const auto found = std::find(result.failures.begin(), result.failures.end(), *sought_);
  return found == result.failures.end() ? nullptr : &*found;
}

bool Bisection::IsOfOtherSize(const Failure& failure, int commit) const {
  return commit != bad_end() && sought_sizes_.Excludes(failure.size);
}

std::string Bisection::OtherFailure(const SeedResult& result) const {
  if (result.failures.empty() || Read(result) != Reading::kUnusable) return "";
  const std::string what = "fails otherwise: ";
  const Failure* same = SoughtIn(result);
  if (same == nullptr) return what + result.failures.front().Text();
  return what + same->Text() + " by " + same->size->Text() + ", at the bad end by " +
         sought_sizes_.Text();
}

Bisection::Reading Bisection::Read(const SeedResult& result) const {
  if (!result.error.empty()) return Reading::kUnusable;
  if (options_.has_metric) {
    // An infinite margin is one: the run lies as far out as it can.
    return result.margin && !std::isnan(*result.margin) ? Reading::kGood : Reading::kUnusable;
  }
  if (!sought_) return result.failures.empty() ? Reading::kGood : Reading::kBad;
  if (const Failure* failure = SoughtIn(result)) {
    return IsOfOtherSize(*failure, result.commit) ? Reading::kUnusable : Reading::kBad;
  }
  if (result.failures.empty() && result.undecided.empty()) return Reading::kGood;
  // Another failure. It hides what is looked for, or the check in question was read all the same.
  for (const Failure& other : result.failures) {
    const bool is_same_check = other.check == sought_->check && other.arm == sought_->arm;
    if (IsEnd(other.failure_class) || is_same_check || sought_->check.empty()) {
      return Reading::kUnusable;
    }
  }
  for (const Failure& other : result.undecided) {
    if (other.check == sought_->check && other.arm == sought_->arm) return Reading::kUnusable;
  }
  return Reading::kGood;
}

void Bisection::Observe(const SeedResult& result, bool refresh) {
  const Reading reading = Read(result);
  if (reading == Reading::kUnusable) {
    int unusable = 0;
    for (const SeedResult& other : results_) {
      if (other.commit != result.commit) continue;
      if (Read(other) != Reading::kUnusable) return;
      ++unusable;
    }
    const bool is_enough = unusable >= kUnusableRuns || result.is_skip;
    if (!is_enough || IsSkipped(result.commit)) return;
    skip_reasons_[result.commit] = !result.error.empty()      ? result.error
                                   : !result.failures.empty() ? OtherFailure(result)
                                   : options_.has_metric
                                       ? std::string("its runs have no margin; ") + kSeesNan
                                       : "its runs say neither";
    search_->Skip(result.commit);
    return;
  }
  if (options_.has_metric && !has_model_) return;
  const double seen = options_.has_metric ? *result.margin : reading == Reading::kBad ? 1.0 : 0.0;
  search_->Observe(result.commit, seen, refresh);
}

void Bisection::Merge(int commit, const std::string& program) {
  for (const auto& [other, its_program] : programs_) {
    if (other != commit && its_program == program) search_->Merge(other, commit);
  }
  programs_[commit] = program;
}

void Bisection::Apply(int commit, Mark mark) {
  if (mark == Mark::kSkip) {
    skip_reasons_[commit] = "skipped by hand";
    search_->Skip(commit);
  } else if (!search_->Mark(commit, mark == Mark::kBad)) {
    throw std::runtime_error(
        "the marks contradict each other: no commit can have broken it, with " +
        commits_[commit].id + " " + ToString(mark));
  }
  marks_[commit] = mark;
}

int Bisection::NextSeed() const {
  int seed = 0;
  for (const SeedResult& result : results_) seed = std::max(seed, result.seed + 1);
  return seed;
}

Bisection::Tally Bisection::TallyOf(int commit) const {
  Tally tally;
  for (const SeedResult& result : results_) {
    if (result.commit != commit) continue;
    const Reading reading = Read(result);
    ++(reading == Reading::kGood  ? tally.passed
       : reading == Reading::kBad ? tally.failed
                                  : tally.unusable);
    for (const Failure& failure : result.failures) ++tally.failures[failure];
  }
  return tally;
}

// Whether a failure that differs by far waits for the bad end to show its sizes.
bool Bisection::NeedsSizes() const {
  if (TallyOf(bad_end()).total() >= kSizeLooks) return false;
  return std::any_of(results_.begin(), results_.end(), [&](const SeedResult& result) {
    const Failure* failure = SoughtIn(result);
    return failure != nullptr && sought_sizes_.LeavesOpen(failure->size);
  });
}

Step Bisection::Next(const std::vector<bool>& is_ready) const {
  if (runs() >= options_.search.max_runs || IsSkipped(0) || IsSkipped(bad_end())) {
    return {Step::kUndecided};
  }
  if (options_.has_metric && !has_model_) {
    const Tally bad = TallyOf(bad_end());
    return {Step::kRun, bad.passed < kMarginLooks ? bad_end() : 0, "ends"};
  }
  if (NeedsSizes()) return {Step::kRun, bad_end(), "ends"};
  const double runs = std::max<double>(1, static_cast<double>(results_.size()));
  const double build = builds_ > 0 ? build_seconds_ / builds_ : kUnknownBuildSeconds;
  const double run = run_seconds_ > 0 ? run_seconds_ / runs : 1.0;
  return search_->Next([&](int commit) { return Cost{!is_ready[commit] ? build : 0.0, run}; });
}

std::string Bisection::WhyMarginsAreAlike() const {
  const std::vector<double> good = MarginsOf(0);
  const std::vector<double> bad = MarginsOf(static_cast<int>(commits_.size()) - 1);
  if (good.empty() || bad.empty()) return "no change was seen";
  auto range = [](const std::vector<double>& margins) {
    const auto [least, most] = std::minmax_element(margins.begin(), margins.end());
    char text[96];
    std::snprintf(text, sizeof text, "%.6g to %.6g in %zu runs", *least, *most, margins.size());
    return std::string(text);
  };
  const auto unusable = std::count_if(results_.begin(), results_.end(), [&](const auto& result) {
    return Read(result) == Reading::kUnusable;
  });
  const std::string missing =
      unusable == 0 ? "" : "; " + std::to_string(unusable) + " runs have no margin, " + kSeesNan;
  const bool is_better =
      *std::min_element(bad.begin(), bad.end()) > *std::max_element(good.begin(), good.end());
  return std::string("no change") +
         (is_better ? " for the worse: the margins of the bad end lie above those of the good one"
                    : ": the margins of both ends look alike") +
         " (good " + range(good) + ", bad " + range(bad) + ")" + missing;
}

std::string Bisection::WhyNoChange() const {
  const Tally good = TallyOf(0), bad = TallyOf(bad_end());
  auto of = [](int count, const Tally& tally) {
    return std::to_string(count) + " of " + std::to_string(tally.passed + tally.failed);
  };
  if (auto reason = skip_reasons_.find(bad_end()); reason != skip_reasons_.end()) {
    return "not reproduced: the bad end cannot be tested: " + reason->second;
  }
  if (auto reason = skip_reasons_.find(0); reason != skip_reasons_.end()) {
    return "not reproduced: the good end cannot be tested: " + reason->second;
  }
  const auto good_program = programs_.find(0), bad_program = programs_.find(bad_end());
  if (good_program != programs_.end() && bad_program != programs_.end() &&
      good_program->second == bad_program->second) {
    return "no change: both ends are the same program";
  }
  if (options_.has_metric) return WhyMarginsAreAlike();
  if (bad.failed == 0) {
    return "not reproduced: the bad end passes (" + of(bad.passed, bad) + " runs)";
  }
  if (good.failed == 0) return "no change: the ends do not differ enough";
  return "no change: the good end fails as well (" + of(good.failed, good) + " runs, the bad end " +
         of(bad.failed, bad) + ")";
}

Journal::Journal(const std::string& path) {
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path);
  const std::string text = ReadFile(path).value_or("");
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (whole < text.size() && ftruncate(fd_, static_cast<off_t>(whole)) != 0) {
    throw std::system_error(errno, std::generic_category(), path);
  }
}

Journal::~Journal() { close(fd_); }

void Journal::Append(const Json& record) {
  const std::string line = record.dump() + "\n";
  if (write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      fdatasync(fd_) != 0) {
    throw std::system_error(errno, std::generic_category(), "writing the log of the bisection");
  }
}

std::vector<Json> Journal::Load(const std::string& path) {
  std::ifstream file(path);
  std::vector<Json> records;
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // without its end: cut off
    Json record = TryParseJson(line);
    if (record.is_discarded()) {
      throw std::runtime_error(path + ":" + std::to_string(records.size() + 1) + ": no JSON");
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace trainwreck
