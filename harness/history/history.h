// The history: a database that every `trainwreck run` adds a record to; by default it is a file of
// SQLite. Readers never wait. A record is one transaction: it is there whole or not at all,
// whatever kills the writer. Several writers wait for each other. docs/guide/history.md describes
// the tables.
//
//   RunHistory history(".trainwreck/history.db", RunHistory::Mode::kWrite);
//   const std::int64_t id = history.Add(MakeRecord(verdicts, info));
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/history/database.h"
#include "harness/history/record.h"

namespace trainwreck {

// The history cannot be used: not there, another program's, of a newer version, damaged. The
// message says what to do.
struct HistoryError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A page was to begin behind a row that is not there.
struct NoSuchRow : HistoryError {
  using HistoryError::HistoryError;
};

// A record without its checks and trainings, for lists.
struct RecordSummary {
  std::int64_t id = 0;
  std::string started_utc;
  std::string commit;
  bool is_dirty = false;
  std::string target;
  std::string target_digest;
  std::map<std::string, int> counts;  // by verdict
};

// In a list of cases: what is behind it is older. Without a case's name, behind all of the run.
struct CasePlace {
  std::int64_t run = 0;
  std::string case_name;
};

struct Baseline {
  std::string name;
  std::int64_t run = 0;
  std::string set_utc;
};

// What came of a merge.
struct MergeCounts {
  int added = 0;
  int known = 0;                       // were there already
  std::vector<std::string> baselines;  // that were added
  std::vector<std::string> left_out;   // baselines of a name that is another run's here
};

class RunHistory {
 public:
  enum class Mode { kRead, kWrite };
  static constexpr int kSchemaVersion = 1;

  // `path` is a file, or a server's address (postgres.h). kWrite makes file, folder and tables
  // where they are missing. Throws HistoryError.
  RunHistory(const std::string& path, Mode mode);
  // Whether a history may be found there: a file that exists, or any server.
  static bool MayBeThere(const std::string& path);

  // All throw DatabaseError when the database fails, with a full disk, say.
  std::int64_t Add(const Record& record);
  // Adds to a stored run the seeds of its cases that it lacks. Its verdicts stay as they were
  // judged.
  void AddSeeds(std::int64_t id, const Record& more);
  // Adds what `other` has and this one lacks: records, seeds of records, baselines. A record is
  // known by its time, host, folder and command line. Each record is one transaction, so a merge
  // that was cut off can be made again.
  MergeCounts MergeFrom(RunHistory& other);
  bool Has(std::int64_t id);
  std::optional<Record> Load(std::int64_t id);
  // Newest first, by the time of the start: a merge may add older ones. With `before`, those behind
  // that run; throws NoSuchRow if there is none.
  std::vector<RecordSummary> List(int limit, std::optional<std::int64_t> before = std::nullopt);
  // The cases whose name, or scenario's name, matches the glob `scenario`; newest first. They have
  // `trainings`, but no checks.
  std::vector<std::pair<RecordSummary, CaseRecord>> ListCases(
      const std::string& scenario, int limit,
      const std::optional<CasePlace>& before = std::nullopt);
  // What each case took with this target: the median of its `newest` records that say it.
  std::map<std::string, double> Seconds(const std::string& target, int newest = 5);
  std::optional<std::int64_t> Newest();
  std::vector<std::int64_t> OfCommit(const std::string& hash_prefix);  // newest first, clean ones

  void SetBaseline(const std::string& name, std::int64_t run, const std::string& set_utc);
  std::vector<Baseline> Baselines();

 private:
  void Prepare(Mode mode);
  std::optional<std::int64_t> Find(const Record& record);
  std::vector<std::string> CasesLike(const std::string& scenario);
  std::unique_ptr<Database> database_;
};

}  // namespace trainwreck
