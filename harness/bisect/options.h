// The options of a bisection, as the command line gives them.
#pragma once

#include <string>
#include <vector>

#include "harness/session/options.h"

namespace trainwreck {

struct BisectOptions {
  CommonOptions common;
  std::vector<std::string> goods;
  std::string bad;
  std::string scenario;
  std::string test;  // a shell command, instead of a scenario
  double test_limit_seconds = 7200;
  std::string term_old, term_new;     // words for good and bad; empty: the usual ones
  std::vector<std::string> versions;  // a package and a range of its releases; empty: commits
  std::vector<std::string> partners;  // other packages, PACKAGE==VERSION, that go with each release
  bool pre = false;                   // pre-releases as well
  std::vector<std::string> also;      // versions that pip does not list
  std::string python;                 // that runs the target; empty: as its command says
  std::vector<std::string> skips;     // revisions or ranges
  std::vector<std::string> marks;     // REV=good, REV=bad, REV=skip
  std::vector<std::string> paths;     // after `--`: only commits that change these
  bool first_parent = false;
  bool no_flakes = false;       // before the culprit no run fails
  std::string json;             // file for the result
  std::string html;             // file for its page
  std::string metric;           // a formula; empty: whether the scenario passes
  std::string arm = "control";  // that the metric is read in
  std::string build;            // a shell command, run in the worktree
  double build_limit_seconds = 7200;
  std::vector<std::string> artifacts;
  double confidence = 0.95;
  int max_runs = 1000;
  int jobs = 0;  // 0: as many cores as this process may use
  bool fresh = false;
  std::vector<std::string> between;  // two scenarios, good and bad; no commits then
  std::string replay;                // a log; nothing is run
};

}  // namespace trainwreck
