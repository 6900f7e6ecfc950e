// The numbers that a training program prints with each step, found in its first lines, and what
// those are whose names make it plain.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trainwreck {

struct PrintedMetric {
  // Of the signal: "val_loss" of "val/loss".
  std::string Signal() const;

  std::string name;       // as printed: "val/loss"
  std::string role;       // "eval_loss"
  std::string text = "";  // of the pattern
};

struct PrintedMetrics {
  std::string line;  // the first one that has them
  bool has_step = false;
  int first_step = 0;
  // In the order of the line, each role once; "step" is that of the number of the step.
  std::vector<PrintedMetric> metrics;

  // A pattern for a source of `stdout`, whose groups are the signals.
  std::string Pattern() const;
};

// The role of a signal that is called so: "eval_loss" of "val/loss"; empty: the name does not say.
std::string RoleOfMetric(const std::string& name);

// Of lines that have the same names, two at least or with a held-out loss: the kind of lines with
// most roles. `known` are roles that are read in another way: a metric of that kind is passed over.
std::optional<PrintedMetrics> FindPrintedMetrics(const std::vector<std::string>& lines,
                                                 const std::vector<std::string>& known = {});

}  // namespace trainwreck
