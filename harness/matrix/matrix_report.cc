// The matrix for people and for programs.
#include <fmt/format.h>

#include <algorithm>

#include "harness/matrix/matrix.h"

namespace trainwreck {
namespace {

Json ToJson(const Count& count) { return {count.holds, count.fails, count.unknown}; }

// "5/5", "-" where nothing could be read; unknown runs are left out.
std::string Share(const Count& count) {
  return count.known() == 0 ? "-" : fmt::format("{}/{}", count.holds, count.known());
}

std::string FalsePositiveText(const FalsePositives& all) {
  return fmt::format(
      "false positives: {} of {} control runs show a symptom (95% upper bound {:.2g}%), {} of {} "
      "readings",
      all.alarmed_runs, all.control_runs, 100 * all.upper_bound, all.readings, all.known_readings);
}

std::string PairText(const Matrix& matrix, const FaultPair& pair) {
  return matrix.columns[pair.a].name + " and " + matrix.columns[pair.b].name +
         (pair.only_unreadable ? " (a symptom of one cannot be read in the other)" : "");
}

// A line of the summary: own symptoms, and those of others that hold in all runs.
std::string ColumnText(const Matrix& matrix, std::size_t c, std::size_t width) {
  const MatrixColumn& column = matrix.columns[c];
  int own = 0, own_held = 0, read = 0, foreign = 0;
  std::string names;
  for (std::size_t s = 0; s < matrix.symptoms.size(); ++s) {
    const Count& count = column.fault[s];
    const bool holds = count.runs() > 0 && count.holds == count.runs();
    if (column.is_own[s]) {
      ++own;
      own_held += holds;
      continue;
    }
    read += count.known() > 0;
    if (!holds) continue;
    if (++foreign <= 3) names += (names.empty() ? "" : ", ") + matrix.symptoms[s].name();
  }
  if (foreign > 3) names += ", ...";
  return fmt::format("{:<{}}  {:>5}  {:>12}{}{}\n", column.name, width,
                     fmt::format("{}/{}", own_held, own), fmt::format("{}/{}", foreign, read),
                     names.empty() ? "" : "  ", names);
}

}  // namespace

Json ToJson(const Matrix& matrix) {
  Json cases = Json::array(), symptoms = Json::array(), alarms = Json::array(),
       pairs = Json::array(), skipped = Json::object();
  for (const MatrixColumn& column : matrix.columns) {
    cases.push_back({{"name", column.name},
                     {"scenario", column.scenario},
                     {"control_runs", column.control_runs},
                     {"alarmed_control_runs", column.alarmed_control_runs}});
  }
  for (std::size_t s = 0; s < matrix.symptoms.size(); ++s) {
    const SuiteSymptom& symptom = matrix.symptoms[s];
    Json cells = Json::array();
    for (const MatrixColumn& column : matrix.columns) {
      cells.push_back({{"case", column.name},
                       {"own", static_cast<bool>(column.is_own[s])},
                       {"fault", ToJson(column.fault[s])},
                       {"control", ToJson(column.control[s])}});
    }
    symptoms.push_back({{"scenario", symptom.scenario},
                        {"name", symptom.check.name},
                        {"formula", symptom.check.formula.text()},
                        {"cells", cells}});
  }
  const FalsePositives all = FalsePositivesOf(matrix);
  for (const FalsePositives::Cell& cell : all.cells) {
    alarms.push_back({{"symptom", matrix.symptoms[cell.symptom].name()},
                      {"case", matrix.columns[cell.column].name},
                      {"control", ToJson(cell.count)}});
  }
  for (const FaultPair& pair : PairsNotSeparated(matrix)) {
    pairs.push_back({{"cases", {matrix.columns[pair.a].name, matrix.columns[pair.b].name}},
                     {"only_unreadable", pair.only_unreadable}});
  }
  for (const auto& [name, why] : matrix.skipped) skipped[name] = why;
  return {{"schema", kMatrixSchema},
          {"version", kMatrixVersion},
          {"counts", {"true", "false", "unknown"}},
          {"cases", cases},
          {"symptoms", symptoms},
          {"false_positives",
           {{"alarmed_control_runs", all.alarmed_runs},
            {"control_runs", all.control_runs},
            {"upper_bound_95", all.upper_bound},
            {"true_readings", all.readings},
            {"known_readings", all.known_readings},
            {"cells", alarms}}},
          {"not_separated", pairs},
          {"skipped", skipped}};
}

std::string ToText(const Matrix& matrix) {
  std::size_t width = 6;
  for (const MatrixColumn& column : matrix.columns) width = std::max(width, column.name.size());
  std::string text = fmt::format("# {:<{}}  {:>5}  {:>12}  {}\n", "case", width - 2, "own",
                                 "others' held", "which, of others");
  for (std::size_t c = 0; c < matrix.columns.size(); ++c) text += ColumnText(matrix, c, width);
  const FalsePositives all = FalsePositivesOf(matrix);
  text += "# " + FalsePositiveText(all) + "\n";
  for (const FalsePositives::Cell& cell : all.cells) {
    text += fmt::format("FALSE POSITIVE  {} holds in {} control runs of {}\n",
                        matrix.symptoms[cell.symptom].name(), Share(cell.count),
                        matrix.columns[cell.column].name);
  }
  const std::vector<FaultPair> pairs = PairsNotSeparated(matrix);
  text += fmt::format("# pairs of faults that no symptom separates: {}\n", pairs.size());
  for (const FaultPair& pair : pairs) text += "NOT SEPARATED   " + PairText(matrix, pair) + "\n";
  for (const auto& [name, why] : matrix.skipped) {
    text += fmt::format("SKIPPED         {} ({})\n", name, why);
  }
  return text;
}

}  // namespace trainwreck
