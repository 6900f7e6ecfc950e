#include "harness/history/history.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "harness/history/postgres.h"
#include "harness/history/record_rows.h"
#include "harness/history/sqlite.h"
#include "harness/statistics/trend.h"
#include "harness/text/glob.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr int kBusyMs = 30'000;

// Version 1. A later version adds an upgrade from each earlier one; readers refuse newer ones.
constexpr const char* kTables = R"(
CREATE TABLE run(
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  started_utc TEXT NOT NULL,
  version TEXT NOT NULL,
  command_line TEXT NOT NULL,
  commit_hash TEXT NOT NULL,
  dirty INTEGER NOT NULL,
  target TEXT NOT NULL,
  target_digest TEXT NOT NULL,
  isolation TEXT NOT NULL,
  host TEXT NOT NULL,
  cores INTEGER NOT NULL,
  output_dir TEXT NOT NULL,
  wall_seconds REAL,
  cpu_seconds REAL);
CREATE TABLE verdict(
  id INTEGER PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  case_name TEXT NOT NULL,
  scenario TEXT NOT NULL,
  scenario_digest TEXT NOT NULL,
  environment TEXT NOT NULL,
  verdict TEXT NOT NULL,
  class TEXT NOT NULL,
  reason TEXT NOT NULL);
CREATE TABLE reading(
  verdict_id INTEGER NOT NULL REFERENCES verdict(id),
  arm TEXT NOT NULL,
  check_name TEXT NOT NULL,
  formula TEXT NOT NULL,
  expected INTEGER NOT NULL,
  unit TEXT NOT NULL,
  agree INTEGER NOT NULL,
  seeds INTEGER NOT NULL,
  margins TEXT NOT NULL);
CREATE TABLE training(
  verdict_id INTEGER NOT NULL REFERENCES verdict(id),
  arm TEXT NOT NULL,
  seed INTEGER NOT NULL,
  "end" TEXT NOT NULL,
  step_seconds REAL,
  peak_memory_bytes REAL,
  final_signals TEXT NOT NULL);
CREATE TABLE baseline(
  name TEXT PRIMARY KEY,
  run_id INTEGER NOT NULL REFERENCES run(id),
  set_utc TEXT NOT NULL);
CREATE INDEX run_commit ON run(commit_hash);
CREATE INDEX verdict_run ON verdict(run_id);
CREATE INDEX verdict_case ON verdict(case_name);
CREATE INDEX reading_verdict ON reading(verdict_id);
CREATE INDEX training_verdict ON training(verdict_id);
)";

// Beside version 1, so that programs that do not know them read and write the file as before.
constexpr const char* kTablesBeside = R"(
CREATE TABLE IF NOT EXISTS bits(
  verdict_id INTEGER NOT NULL REFERENCES verdict(id),
  arm TEXT NOT NULL,
  seed INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  digest TEXT NOT NULL,
  signals TEXT NOT NULL,
  every INTEGER NOT NULL,
  marks TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS bits_verdict ON bits(verdict_id);
CREATE TABLE IF NOT EXISTS cost(
  verdict_id INTEGER NOT NULL REFERENCES verdict(id),
  wall_seconds REAL,
  cpu_seconds REAL);
CREATE INDEX IF NOT EXISTS cost_verdict ON cost(verdict_id);
)";

// So, too. Without them, or without rows that an older program did not add, reading is the same and
// slower. `listing` is a verdict's place among those of its case, by the time of the run's start.
constexpr const char* kOrders = R"(
CREATE INDEX IF NOT EXISTS run_started ON run(started_utc);
CREATE TABLE IF NOT EXISTS listing(
  verdict_id INTEGER PRIMARY KEY,
  case_name TEXT NOT NULL,
  started_utc TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS listing_case ON listing(case_name, started_utc, verdict_id);
)";

// All verdicts that are not listed yet: records come one by one, so they are the last ones.
void ListNewVerdicts(Database& database) {
  database.Execute(
      "INSERT INTO listing(verdict_id, case_name, started_utc) SELECT verdict.id, case_name, "
      "started_utc FROM verdict JOIN run ON run.id = run_id WHERE verdict.id > (SELECT "
      "coalesce(max(verdict_id), 0) FROM listing)");
}

// Before a query that reads `listing`: nothing, or the same by joining, where the table lacks some.
std::string Listing(Database& database) {
  const bool is_complete =
      database.Has("listing") &&
      database.QueryInteger("SELECT coalesce(max(id), 0) FROM verdict") ==
          database.QueryInteger("SELECT coalesce(max(verdict_id), 0) FROM listing");
  if (is_complete) return "";
  return "WITH listing AS (SELECT verdict.id AS verdict_id, case_name, started_utc FROM verdict "
         "JOIN run ON run.id = run_id) ";
}

constexpr const char* kFromListing =
    " FROM listing JOIN verdict ON verdict.id = listing.verdict_id JOIN run ON run.id = run_id";
constexpr const char* kNewestFirst =
    " ORDER BY listing.started_utc DESC, listing.verdict_id DESC LIMIT ?";

NoSuchRow NoRow(std::int64_t run, const std::string& case_name = "") {
  return NoSuchRow("the history has no run " + std::to_string(run) +
                   (case_name.empty() ? "" : " with a case '" + case_name + "'"));
}

// Behind which rows of a list a page begins: (time of the start, number of the run or the verdict).
using Place = std::pair<std::string, std::int64_t>;
const Place kNewest = {"~", std::numeric_limits<std::int64_t>::max()};  // "~" is behind all digits

RecordSummary SummaryFrom(const Statement& row) {
  RecordSummary summary;
  summary.id = row.Integer(0);
  summary.started_utc = row.Text(1);
  summary.commit = row.Text(2);
  summary.is_dirty = row.Integer(3) != 0;
  summary.target = row.Text(4);
  summary.target_digest = row.Text(5);
  return summary;
}

constexpr const char* kSummaryColumns =
    "run.id, run.started_utc, run.commit_hash, run.dirty, run.target, run.target_digest";

std::unique_ptr<Database> Open(const std::string& path, RunHistory::Mode mode) {
  if (IsServer(path)) return OpenPostgres(path, kBusyMs);
  std::error_code error;
  if (mode == RunHistory::Mode::kRead) {
    if (!fs::is_regular_file(path, error)) {
      throw HistoryError("there is no history in " + path +
                         ": 'trainwreck run' makes it, --history FILE names another");
    }
  } else if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) {
    fs::create_directories(folder, error);
    if (error) throw HistoryError("cannot make " + folder.string() + ": " + error.message());
  }
  return OpenSqlite(path, kBusyMs);
}

}  // namespace

RunHistory::RunHistory(const std::string& path, Mode mode) try : database_(Open(path, mode)) {
  Prepare(mode);
} catch (const DatabaseError& error) {
  throw HistoryError(error.what());
}

bool RunHistory::MayBeThere(const std::string& path) {
  std::error_code error;
  return IsServer(path) || fs::is_regular_file(path, error);
}

void RunHistory::Prepare(Mode mode) {
  const std::int64_t version = database_->Version();
  if (version > kSchemaVersion) {
    throw HistoryError(database_->name() + " has schema version " + std::to_string(version) +
                       ", this program knows " + std::to_string(kSchemaVersion) +
                       ": use a newer trainwreck, or another history with --history FILE");
  }
  if (version == 0) {
    if (mode == Mode::kRead) {
      throw HistoryError(database_->name() + " is empty: 'trainwreck run' fills it");
    }
    database_->CreateTables(std::string(kTables) + kTablesBeside + kOrders, kSchemaVersion);
  } else if (mode == Mode::kWrite &&
             !(database_->Has("bits") && database_->Has("cost") && database_->Has("run_started") &&
               database_->Has("listing"))) {
    Transaction transaction(*database_, Database::Access::kWrite);
    database_->AddTables(std::string(kTablesBeside) + kOrders);
    transaction.Commit();
  }
}

std::int64_t RunHistory::Add(const Record& record) {
  Transaction transaction(*database_, Database::Access::kWrite);
  Statement run(*database_,
                "INSERT INTO run(started_utc, version, command_line, commit_hash, dirty, target, "
                "target_digest, isolation, host, cores, output_dir, wall_seconds, cpu_seconds) "
                "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id");
  run.Bind(record.started_utc).Bind(record.version).Bind(record.command_line);
  run.Bind(record.commit).Bind(record.is_dirty ? 1 : 0).Bind(record.target);
  run.Bind(record.target_digest).Bind(record.isolation).Bind(record.host).Bind(record.cores);
  run.Bind(record.output_dir).Bind(record.wall_seconds).Bind(record.cpu_seconds);
  const std::int64_t id = run.Insert();
  for (const CaseRecord& one : record.cases) AddCase(*database_, id, one);
  ListNewVerdicts(*database_);
  transaction.Commit();
  return id;
}

void RunHistory::AddSeeds(std::int64_t id, const Record& more) {
  Transaction transaction(*database_, Database::Access::kWrite);
  std::map<std::pair<std::string, std::string>, std::int64_t> verdicts;  // by name and digest
  Statement find(*database_,
                 "SELECT id, case_name, scenario_digest FROM verdict WHERE run_id = ? ORDER BY id");
  find.Bind(id);
  while (find.Step()) verdicts[{find.Text(1), find.Text(2)}] = find.Integer(0);
  Statement read(*database_,
                 "SELECT rowid, margins FROM reading WHERE verdict_id = ? AND arm = ? AND "
                 "check_name = ? AND formula = ? AND expected = ? AND unit = ?");
  Statement write(*database_, "UPDATE reading SET margins = ? WHERE rowid = ?");
  for (const CaseRecord& one : more.cases) {
    const auto found = verdicts.find({one.name, one.scenario_digest});
    if (found == verdicts.end()) continue;
    const std::int64_t verdict_id = found->second;
    for (const MarginRecord& margin : one.margins) {
      read.Reset();
      read.Bind(verdict_id).Bind(margin.arm).Bind(margin.check).Bind(margin.formula);
      read.Bind(margin.expected ? 1 : 0).Bind(margin.unit);
      if (!read.Step()) continue;
      std::map<int, double> by_seed = margin.by_seed;
      for (const auto& [seed, value] : DecodeSeeds(read.Text(1))) by_seed[seed] = value;
      write.Reset();
      write.Bind(EncodeSeeds(by_seed)).Bind(read.Integer(0)).Step();
    }
    CaseRecord known;
    ReadTrainings(*database_, verdict_id, known);
    std::vector<TrainingRecord> added;
    for (const TrainingRecord& training : one.trainings) {
      const bool is_known = std::any_of(
          known.trainings.begin(), known.trainings.end(), [&](const TrainingRecord& other) {
            return other.arm == training.arm && other.seed == training.seed;
          });
      if (!is_known) added.push_back(training);
    }
    AddTrainings(*database_, verdict_id, added);
  }
  transaction.Commit();
}

std::optional<std::int64_t> RunHistory::Find(const Record& record) {
  Statement row(*database_,
                "SELECT id FROM run WHERE started_utc = ? AND host = ? AND output_dir = ? AND "
                "command_line = ?");
  row.Bind(record.started_utc).Bind(record.host).Bind(record.output_dir);
  row.Bind(record.command_line);
  if (!row.Step()) return std::nullopt;
  return row.Integer(0);
}

MergeCounts RunHistory::MergeFrom(RunHistory& other) {
  MergeCounts counts;
  std::vector<std::int64_t> ids;
  Statement row(*other.database_, "SELECT id FROM run ORDER BY id");
  while (row.Step()) ids.push_back(row.Integer(0));
  std::map<std::int64_t, std::int64_t> id_here;
  for (const std::int64_t id : ids) {
    const std::optional<Record> record = other.Load(id);
    if (!record) continue;
    const std::optional<std::int64_t> known = Find(*record);
    if (known) {
      AddSeeds(*known, *record);
      ++counts.known;
    } else {
      ++counts.added;
    }
    id_here[id] = known ? *known : Add(*record);
  }
  std::map<std::string, std::int64_t> here;
  for (const Baseline& one : Baselines()) here[one.name] = one.run;
  for (const Baseline& one : other.Baselines()) {
    const auto run = id_here.find(one.run);
    if (run == id_here.end()) continue;
    const auto known = here.find(one.name);
    if (known == here.end()) {
      SetBaseline(one.name, run->second, one.set_utc);
      counts.baselines.push_back(one.name);
    } else if (known->second != run->second) {
      counts.left_out.push_back(one.name);
    }
  }
  return counts;
}

bool RunHistory::Has(std::int64_t id) {
  Statement row(*database_, "SELECT 1 FROM run WHERE id = ?");
  row.Bind(id);
  return row.Step();
}

std::optional<Record> RunHistory::Load(std::int64_t id) {
  const Transaction one_moment(*database_, Database::Access::kRead);
  Statement run(*database_,
                "SELECT started_utc, version, command_line, commit_hash, dirty, target, "
                "target_digest, isolation, host, cores, output_dir, wall_seconds, cpu_seconds "
                "FROM run WHERE id = ?");
  run.Bind(id);
  if (!run.Step()) return std::nullopt;
  Record record{.id = id,
                .started_utc = run.Text(0),
                .version = run.Text(1),
                .command_line = run.Text(2),
                .commit = run.Text(3),
                .is_dirty = run.Integer(4) != 0,
                .target = run.Text(5),
                .target_digest = run.Text(6),
                .isolation = run.Text(7),
                .host = run.Text(8),
                .cores = static_cast<int>(run.Integer(9)),
                .output_dir = run.Text(10),
                .wall_seconds = run.Number(11),
                .cpu_seconds = run.Number(12),
                .cases = {}};
  const bool has_bits = database_->Has("bits"), has_cost = database_->Has("cost");
  Statement row(*database_, std::string("SELECT ") + kCaseColumns +
                                " FROM verdict WHERE run_id = ? ORDER BY id");
  row.Bind(id);
  while (row.Step()) {
    CaseRecord one = CaseFrom(row, 0);
    ReadMargins(*database_, row.Integer(0), one);
    ReadTrainings(*database_, row.Integer(0), one);
    if (has_bits) ReadBits(*database_, row.Integer(0), one);
    if (has_cost) ReadCost(*database_, row.Integer(0), one);
    record.cases.push_back(std::move(one));
  }
  return record;
}

std::vector<RecordSummary> RunHistory::List(int limit, std::optional<std::int64_t> before) {
  Place place = kNewest;
  if (before) {
    Statement start(*database_, "SELECT started_utc FROM run WHERE id = ?");
    start.Bind(*before);
    if (!start.Step()) throw NoRow(*before);
    place = {start.Text(0), *before};
  }
  std::vector<RecordSummary> summaries;
  Statement row(*database_, std::string("SELECT ") + kSummaryColumns +
                                " FROM run WHERE (started_utc, id) < (?, ?) ORDER BY started_utc "
                                "DESC, id DESC LIMIT ?");
  row.Bind(place.first).Bind(place.second).Bind(limit);
  Statement count(*database_, "SELECT verdict, count(*) FROM verdict WHERE run_id = ? GROUP BY 1");
  while (row.Step()) {
    summaries.push_back(SummaryFrom(row));
    count.Reset();
    count.Bind(summaries.back().id);
    while (count.Step()) {
      summaries.back().counts[count.Text(0)] = static_cast<int>(count.Integer(1));
    }
  }
  return summaries;
}

// From one name to the next by the index, so the number of records does not matter.
std::vector<std::string> RunHistory::CasesLike(const std::string& scenario) {
  std::vector<std::string> names;
  Statement next(*database_,
                 "SELECT case_name, scenario FROM verdict WHERE case_name > ? ORDER BY case_name "
                 "LIMIT 1");
  for (std::string last;; next.Reset()) {
    next.Bind(last);
    if (!next.Step()) return names;
    last = next.Text(0);
    const bool matches =
        last == scenario || GlobMatches(scenario, last) || GlobMatches(scenario, next.Text(1));
    if (matches) names.push_back(last);
  }
}

std::vector<std::pair<RecordSummary, CaseRecord>> RunHistory::ListCases(
    const std::string& scenario, int limit, const std::optional<CasePlace>& before) {
  using Listed = std::pair<RecordSummary, CaseRecord>;
  Place place = kNewest;
  if (before) {
    Statement start(*database_,
                    "SELECT started_utc, min(verdict.id) FROM verdict JOIN run ON run.id = run_id "
                    "WHERE run_id = ? AND (? = '' OR case_name = ?) GROUP BY 1");
    start.Bind(before->run).Bind(before->case_name).Bind(before->case_name);
    if (!start.Step()) throw NoRow(before->run, before->case_name);
    place = {start.Text(0), start.Integer(1)};
  }
  std::vector<std::pair<std::int64_t, Listed>> found;  // by the verdict's number
  Statement row(*database_, Listing(*database_) + "SELECT " + kSummaryColumns + ", " +
                                kCaseColumns + kFromListing +
                                " WHERE listing.case_name = ? AND (listing.started_utc, "
                                "listing.verdict_id) < (?, ?)" +
                                kNewestFirst);
  for (const std::string& name : CasesLike(scenario)) {
    row.Reset();
    row.Bind(name).Bind(place.first).Bind(place.second).Bind(limit);
    while (row.Step()) {
      found.emplace_back(row.Integer(6), Listed(SummaryFrom(row), CaseFrom(row, 6)));
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const std::string &x = a.second.first.started_utc, &y = b.second.first.started_utc;
    return x != y ? x > y : a.first > b.first;
  });
  if (static_cast<int>(found.size()) > limit) found.resize(limit);
  std::vector<Listed> cases;
  for (auto& [verdict_id, one] : found) {
    ReadTrainings(*database_, verdict_id, one.second);
    cases.push_back(std::move(one));
  }
  return cases;
}

std::map<std::string, double> RunHistory::Seconds(const std::string& target, int newest) {
  std::map<std::string, double> seconds;
  if (!database_->Has("cost")) return seconds;
  Statement row(*database_, Listing(*database_) + "SELECT cost.wall_seconds" + kFromListing +
                                " JOIN cost ON cost.verdict_id = verdict.id WHERE "
                                "listing.case_name = ? AND run.target = ?" +
                                kNewestFirst);
  for (const std::string& name : CasesLike("*")) {
    row.Reset();
    row.Bind(name).Bind(target).Bind(newest);
    std::vector<double> took;
    while (row.Step()) took.push_back(row.Number(0));
    if (!took.empty()) seconds[name] = statistics::Median(std::move(took));
  }
  return seconds;
}

std::optional<std::int64_t> RunHistory::Newest() {
  Statement row(*database_, "SELECT id FROM run ORDER BY started_utc DESC, id DESC LIMIT 1");
  if (!row.Step()) return std::nullopt;
  return row.Integer(0);
}

std::vector<std::int64_t> RunHistory::OfCommit(const std::string& hash_prefix) {
  std::vector<std::int64_t> ids;
  Statement row(*database_,
                "SELECT id FROM run WHERE dirty = 0 AND commit_hash >= ? AND commit_hash < ? "
                "ORDER BY started_utc DESC, id DESC");
  row.Bind(hash_prefix).Bind(hash_prefix + "g");  // behind all hexadecimal digits
  while (row.Step()) ids.push_back(row.Integer(0));
  return ids;
}

void RunHistory::SetBaseline(const std::string& name, std::int64_t run,
                             const std::string& set_utc) {
  Transaction transaction(*database_, Database::Access::kWrite);
  Statement set(*database_,
                "INSERT INTO baseline(name, run_id, set_utc) VALUES(?, ?, ?) ON CONFLICT(name) DO "
                "UPDATE SET run_id = excluded.run_id, set_utc = excluded.set_utc");
  set.Bind(name).Bind(run).Bind(set_utc).Step();
  transaction.Commit();
}

std::vector<Baseline> RunHistory::Baselines() {
  std::vector<Baseline> baselines;
  Statement row(*database_, "SELECT name, run_id, set_utc FROM baseline ORDER BY name");
  while (row.Step()) baselines.push_back({row.Text(0), row.Integer(1), row.Text(2)});
  return baselines;
}

}  // namespace trainwreck
