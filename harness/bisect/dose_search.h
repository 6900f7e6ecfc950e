// The search for doses. Each round runs all arms of one seed, at the dose that tells most about a
// question, until every question has its answer. The doses are a line, as commits are, and the
// search is that of bisect: for the first dose at which runs fail.
//
//   DoseSearch search(session, request);
//   if (!search.Run(folder)) return kExitInterrupted;
//   for (const DoseAnswer& answer : search.Answers()) ...
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/bisect/dose.h"
#include "harness/plan/run.h"
#include "harness/protocol/json.h"
#include "harness/session/session.h"

namespace trainwreck {

struct DoseRequest {
  std::string scenario;            // one point of one scenario
  std::string parameter;           // inject.ID.with.NAME, or strength
  std::optional<double> from, to;  // else the bounds that the fault has for it
  int levels = 33;
  bool linear = false;
  double confidence = 0.95;
  int max_runs = 400;  // seeds per question
  int cores = 0;
};

// "inject.hot_lr.with.factor"
struct DoseParameter {
  std::string fault_id;  // empty: the strength of the scenario
  ParamInfo info;
  Json now;  // the scenario's own value
  std::optional<double> weakest, strongest;
};

// Throws UsageError, which lists the parameters that there are.
DoseParameter FindDoseParameter(const std::string& text, const Scenario& scenario,
                                const TargetDescription& target);

struct DoseAnswer {
  bool is_remedy = false;
  std::string name;
  bool is_decided = false;  // a dose was found, or that there is none
  std::string text;         // see LimitText
  double confidence = 0;
  std::optional<double> limit;
  DoseRange between;
  std::optional<std::pair<double, double>> rates;  // before and after the limit
  std::map<int, std::pair<int, int>> seen;         // see DoseQuestion
};

class DoseSearch {
 public:
  // Throws UsageError, and ConfigurationError where the scenario cannot be run here.
  DoseSearch(const Session& session, const DoseRequest& request);

  const std::vector<double>& doses() const { return doses_; }
  int seeds() const { return seeds_; }  // run so far
  const Case& strongest() const { return strongest_; }

  // Runs leave nothing in the folder. False when interrupted.
  bool Run(const std::string& folder);
  std::vector<DoseAnswer> Answers() const;
  Json ToJson() const;  // schema trainwreck/dose

 private:
  Scenario At(int dose) const;
  bool Look(int dose, const std::string& folder);
  DoseAnswer AnswerOf(const DoseQuestion& question) const;

  const Session session_;
  const DoseRequest request_;
  const Scenario scenario_;  // with that point alone
  const DoseParameter parameter_;
  const std::vector<double> doses_;
  const Case strongest_;
  std::vector<DoseQuestion> questions_;
  int seeds_ = 0;
};

}  // namespace trainwreck
