#include "harness/bisect/between.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/bisect/bisection.h"
#include "harness/bisect/reduce.h"
#include "harness/bisect/seed_result.h"
#include "harness/campaign/campaign.h"
#include "harness/process/interruption.h"
#include "harness/session/chosen.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

struct NothingToFind {
  std::string why;
};

// One key of the recipe, as the good scenario and as the bad one has it.
struct Difference {
  std::string key;
  Json good, bad;
};

// The good scenario, of which the recipe is changed piece by piece into the bad one's. Each set of
// changes is judged like a commit between two ends, with all that was seen of the ends so far.
class ChangeSearch {
 public:
  explicit ChangeSearch(const BisectOptions& options);
  int Run();

 private:
  bool Flips(const ChangeSet& changes);
  SeedResult RunSeed(const ChangeSet& changes, int commit, bool control_only);
  Changes ChangesOf(const ChangeSet& changes) const;

  const BisectOptions& options_;
  Session session_;
  Scenario good_, bad_;
  std::vector<Difference> differences_;
  ChangeSet all_;
  std::vector<Json> ends_;  // runs of both ends, as records of a bisection
  int runs_ = 0;
  double confidence_ = 1;
};

// Commit numbers of the line that every question is put to.
constexpr int kGoodEnd = 0, kMiddle = 1, kBadEnd = 2;

ChangeSearch::ChangeSearch(const BisectOptions& options)
    : options_(options),
      session_(OpenSession(options.common)),
      good_(LoadOnePoint(session_, options.between.at(0))),
      bad_(LoadOnePoint(session_, options.between.at(1))) {
  const Recipe good = ResolveRecipe(session_.description, good_, good_.points.front(), {});
  const Recipe bad = ResolveRecipe(session_.description, bad_, bad_.points.front(), {});
  for (const auto& [key, value] : bad) {
    const auto of_good = good.find(key);
    if (of_good == good.end() || of_good->second == value) continue;
    all_.insert(static_cast<int>(differences_.size()));
    differences_.push_back({key, of_good->second, value});
  }
  if (differences_.empty()) throw UsageError("--between: both recipes are the same");
}

Changes ChangeSearch::ChangesOf(const ChangeSet& changes) const {
  Changes overrides;
  for (int change : changes) {
    overrides.set.emplace_back(differences_[change].key, differences_[change].bad);
  }
  return overrides;
}

SeedResult ChangeSearch::RunSeed(const ChangeSet& changes, int commit, bool control_only) {
  PlanOptions plan;
  plan.overrides = ChangesOf(changes);
  plan.each_seed = {runs_, runs_ + 1};
  plan.control_only = control_only;
  const std::vector<Case> cases = PlanCases({good_}, session_.description, plan);
  LauncherOptions launcher;
  launcher.target = session_.target;
  launcher.cores = options_.jobs;
  const std::string output = MakeOutputFolder("", /*is_latest=*/false);
  launcher.output_dir = fs::absolute(output).lexically_normal().string();
  Campaign campaign(cases, session_.description, launcher, {.keep = KeepRuns::kNone});
  const CampaignResult result = campaign.Execute([](const Verdict&) {}, [](int, int, int) {});
  fs::remove_all(launcher.output_dir);
  if (result.interrupted) throw Interrupted();
  return SeedResultOf(result.verdicts.front(), commit, runs_++);
}

// Throws NothingToFind when the ends do not differ.
bool ChangeSearch::Flips(const ChangeSet& changes) {
  BisectionOptions options;
  // Some questions are asked; all of the answers should be right at once.
  options.search.confidence = 1 - (1 - options_.confidence) / 4;
  options.search.max_runs = options_.max_runs;
  Bisection line(
      {{"good", "good", {}}, {"middle", "middle", {kGoodEnd}}, {"bad", "bad", {kMiddle}}}, options);
  for (const Json& record : ends_) line.Apply(record);
  for (;;) {
    const Step step = line.Next(std::vector<bool>(3, true));
    if (step.kind == Step::kNoChange || line.IsSkipped(kGoodEnd) || line.IsSkipped(kBadEnd)) {
      throw NothingToFind{line.WhyNoChange()};
    }
    if (step.kind != Step::kRun) {
      const bool flips =
          step.kind == Step::kCulprit && line.search().suspects() == std::vector<int>{kMiddle};
      const Bisection::Tally tally = line.TallyOf(kMiddle);
      std::cout << (flips ? "fails  " : "passes ") << tally.failed << " of "
                << tally.passed + tally.failed << " runs with";
      for (int change : changes) std::cout << " " << differences_[change].key;
      std::cout << "\n" << std::flush;
      confidence_ = std::min(confidence_, line.search().confidence());
      return flips;
    }
    const ChangeSet& set = step.commit == kGoodEnd  ? ChangeSet()
                           : step.commit == kBadEnd ? all_
                                                    : changes;
    const Json record = Bisection::LogRun(RunSeed(set, step.commit, line.AsksOfControlOnly()));
    if (step.commit != kMiddle) ends_.push_back(record);
    line.Apply(record);
  }
}

int ChangeSearch::Run() {
  std::cout << "# " << differences_.size() << " differences between " << options_.between.at(0)
            << " and " << options_.between.at(1) << "\n";
  if (!Flips(all_)) throw NothingToFind{"undecided: --max-runs is reached at the ends"};
  const ChangeSet found = Reduce(all_, [this](const ChangeSet& changes) { return Flips(changes); });
  std::cout << (found.size() == 1 ? "this change flips the verdict\n"
                                  : "these changes together flip the verdict\n");
  for (int change : found) {
    std::cout << "  " << differences_[change].key << ": " << differences_[change].good.dump()
              << " -> " << differences_[change].bad.dump() << "\n";
  }
  std::printf("confidence %.1f%% at the least sure step; %d runs\n", 100 * confidence_, runs_);
  return kExitPassed;
}

}  // namespace

int BisectBetween(const BisectOptions& options) {
  try {
    return ChangeSearch(options).Run();
  } catch (const NothingToFind& nothing) {
    std::cout << nothing.why << "\n";
    return kExitFailed;
  } catch (const Interrupted&) {
    return kExitInterrupted;
  }
}

}  // namespace trainwreck
