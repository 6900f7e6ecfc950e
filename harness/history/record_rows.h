// The rows of a record's cases in the tables of the history (history.h): how they are written, and
// read again. What is damaged throws HistoryError.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/history/database.h"
#include "harness/history/record.h"

namespace trainwreck {

void AddCase(Database& database, std::int64_t run_id, const CaseRecord& record);
void AddTrainings(Database& database, std::int64_t verdict_id,
                  const std::vector<TrainingRecord>& trainings);

// The columns of a verdict, in the order in which CaseFrom reads them from the column `first` on.
inline constexpr const char* kCaseColumns =
    "verdict.id, verdict.case_name, scenario, scenario_digest, environment, verdict, class, reason";
CaseRecord CaseFrom(const Statement& row, int first);
void ReadMargins(Database& database, std::int64_t verdict_id, CaseRecord& record);
void ReadTrainings(Database& database, std::int64_t verdict_id, CaseRecord& record);
// Only of a history that has the table `cost`, or `bits`: those of older programs lack them.
void ReadCost(Database& database, std::int64_t verdict_id, CaseRecord& record);
void ReadBits(Database& database, std::int64_t verdict_id, CaseRecord& record);

// Margins by seed, as one column holds them.
std::string EncodeSeeds(const std::map<int, double>& by_seed);
std::map<int, double> DecodeSeeds(const std::string& text);

}  // namespace trainwreck
