// The database itself: what goes in comes out, whatever else happens to it. It is a file, or on the
// server $TRAINWRECK_TEST_SERVER (tests/postgres_test.py), where each test has a database of its
// own.
#include "harness/history/history.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>

#include "harness/history/history_testing.h"
#include "harness/history/postgres.h"
#include "harness/history/sqlite.h"

namespace trainwreck {
namespace history_test {

namespace fs = std::filesystem;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string NewFolder() {
  const char* tmp = std::getenv("TEST_TMPDIR");
  std::string folder = std::string(tmp != nullptr ? tmp : "/tmp") + "/history-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  return folder;
}

std::string NewPath() {
  const char* server = std::getenv("TRAINWRECK_TEST_SERVER");
  if (server == nullptr) return NewFolder() + "/below/history.db";
  static int databases = 0;
  const std::string name =
      "history_" + std::to_string(getpid()) + "_" + std::to_string(databases++);
  OpenPostgres(server + std::string("/postgres"), 1000)->Execute("CREATE DATABASE " + name);
  return server + ("/" + name);
}

std::unique_ptr<Database> DatabaseAt(const std::string& path) {
  if (IsServer(path)) return OpenPostgres(path, 30'000);
  return OpenSqlite(path, 30'000);
}

std::string ErrorOf(const std::string& path, RunHistory::Mode mode) {
  try {
    RunHistory history(path, mode);
  } catch (const HistoryError& error) {
    return error.what();
  }
  return "";
}

TEST(History, GivesBackWhatItGot) {
  const std::string path = NewPath();
  Record record = TestRecord("0123456789abcdef", "d00d");
  record.is_dirty = true;
  record.wall_seconds = 1.5;
  record.cases[0].margins[0].by_seed = {{0, kInf}, {1, -kInf}, {7, 0.1}};
  record.cases[0].margins[0].expected = false;
  record.cases[1].trainings[0].final_signals = {{"loss", std::nan("")}, {"x", -kInf}};
  record.cases[0].wall_seconds = 2.5;
  record.cases[0].cpu_seconds = 1.0 / 3;
  record.cases[1].trainings[3].bits = {96, "0123456789abcdef", "89abcdef", 2, "0011223344556677"};
  {
    RunHistory history(path, RunHistory::Mode::kWrite);
    EXPECT_EQ(history.Add(record), 1);
    EXPECT_EQ(history.Add(TestRecord("", "")), 2);
  }
  RunHistory history(path, RunHistory::Mode::kRead);
  const auto loaded = history.Load(1);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->id, 1);
  EXPECT_EQ(loaded->commit, record.commit);
  EXPECT_TRUE(loaded->is_dirty);
  EXPECT_EQ(loaded->target_digest, "d00d");
  EXPECT_EQ(loaded->cores, 2);
  EXPECT_EQ(loaded->wall_seconds, 1.5);
  ASSERT_EQ(loaded->cases.size(), 2U);
  const CaseRecord& first = loaded->cases[0];
  EXPECT_EQ(first.scenario_digest, "claims-of-nan/a");
  EXPECT_EQ(first.wall_seconds, 2.5);
  EXPECT_EQ(first.cpu_seconds, 1.0 / 3);
  EXPECT_EQ(loaded->cases[1].wall_seconds, 0);
  EXPECT_EQ(first.environment, record.cases[0].environment);
  EXPECT_EQ(first.reason, "because of \"it\"\n");
  EXPECT_EQ(first.margins[0].by_seed, record.cases[0].margins[0].by_seed);
  EXPECT_FALSE(first.margins[0].expected);
  EXPECT_EQ(first.seeds(), 5);
  EXPECT_EQ(first.trainings[3].step_seconds, 0.004);
  EXPECT_EQ(first.trainings[3].final_signals.at("grad_norm"), 1.0 / 3);
  const auto& signals = loaded->cases[1].trainings[0].final_signals;
  EXPECT_TRUE(std::isnan(signals.at("loss")));
  EXPECT_EQ(signals.at("x"), -kInf);
  EXPECT_EQ(loaded->cases[1].trainings[3].bits, record.cases[1].trainings[3].bits);
  EXPECT_EQ(loaded->cases[1].trainings[2].bits.steps, 0);
  EXPECT_FALSE(history.Load(3));
  EXPECT_FALSE(history.Has(3));
}

TEST(History, GivesBackHundredsOfRowsOfACase) {
  Record record = TestRecord("a", "x");
  CaseRecord& one = record.cases[0];
  for (int seed = 5; seed < 700; ++seed) {
    one.trainings.push_back({.arm = "control", .seed = seed, .end = "completed"});
    one.trainings.back().bits = {seed, "d" + std::to_string(seed), "s", 1, "m"};
    one.margins.push_back(TestMargin("control", std::to_string(seed), {{0, seed}}));
  }
  const std::string path = NewPath();
  RunHistory(path, RunHistory::Mode::kWrite).Add(record);
  const CaseRecord loaded = RunHistory(path, RunHistory::Mode::kRead).Load(1)->cases[0];
  ASSERT_EQ(loaded.trainings.size(), 700U);
  ASSERT_EQ(loaded.margins.size(), 696U);
  for (int seed = 5; seed < 700; ++seed) {
    EXPECT_EQ(loaded.trainings[seed].seed, seed);
    EXPECT_EQ(loaded.trainings[seed].bits, one.trainings[seed].bits);
    EXPECT_EQ(loaded.margins[seed - 4].by_seed, one.margins[seed - 4].by_seed);
  }
}

// A history of a program that knew no bits and no costs is read, and gets them when it is written
// to.
TEST(History, AddsTablesToAnOlderOne) {
  const std::string path = NewPath();
  Record record = TestRecord("a", "x");
  record.cases[0].wall_seconds = 1.0 / 3;
  record.cases[0].trainings[0].bits = {1, "d", "s", 1, "m"};
  RunHistory(path, RunHistory::Mode::kWrite).Add(record);
  DatabaseAt(path)->Execute("DROP TABLE bits");
  DatabaseAt(path)->Execute("DROP TABLE cost");
  DatabaseAt(path)->Execute("DROP TABLE listing");
  {
    RunHistory older(path, RunHistory::Mode::kRead);
    ASSERT_TRUE(older.Load(1));
    EXPECT_EQ(older.Load(1)->cases[0].trainings[0].bits.steps, 0);
    EXPECT_EQ(older.Load(1)->cases[0].wall_seconds, 0);
    EXPECT_TRUE(older.Seconds("trainwreck-trainer 0.1").empty());
  }
  RunHistory history(path, RunHistory::Mode::kWrite);
  EXPECT_EQ(history.Add(record), 2);
  EXPECT_EQ(history.Load(1)->cases[0].trainings[0].bits.steps, 0);
  EXPECT_EQ(history.Load(2)->cases[0].trainings[0].bits.digest, "d");
  EXPECT_EQ(history.Load(1)->cases[0].wall_seconds, 0);
  EXPECT_EQ(history.Load(2)->cases[0].wall_seconds, 1.0 / 3);
}

TEST(History, SaysWhatCasesTook) {
  RunHistory history(NewPath(), RunHistory::Mode::kWrite);
  for (const double seconds : {100.0, 7.0, 0.0, 5.0, 6.0}) {
    Record record = TestRecord("a", "x");
    record.cases[0].wall_seconds = seconds;
    history.Add(record);
  }
  Record other = TestRecord("a", "x");
  other.target = "other 1";
  other.cases[0].wall_seconds = 1000;
  history.Add(other);
  using Seconds = std::map<std::string, double>;
  // nan/b took nothing ever: it was skipped.
  EXPECT_EQ(history.Seconds("trainwreck-trainer 0.1"), Seconds({{"nan/a", 6.5}}));
  EXPECT_EQ(history.Seconds("trainwreck-trainer 0.1", 3), Seconds({{"nan/a", 6}}));
  EXPECT_EQ(history.Seconds("other 1"), Seconds({{"nan/a", 1000}}));
  EXPECT_EQ(history.Seconds("another"), Seconds());
}

TEST(History, FindsByCommitNameAndBaseline) {
  RunHistory history(NewPath(), RunHistory::Mode::kWrite);
  EXPECT_FALSE(history.Newest());
  history.Add(TestRecord("aaaa1111", "x"));
  history.Add(TestRecord("bbbb2222", "y"));
  Record dirty = TestRecord("bbbb2222", "z");
  dirty.is_dirty = true;
  history.Add(dirty);
  history.Add(TestRecord("bbbb2222", "y"));
  EXPECT_EQ(history.OfCommit("bbbb"), (std::vector<std::int64_t>{4, 2}));
  EXPECT_TRUE(history.OfCommit("bb%b").empty());
  EXPECT_EQ(history.Newest(), 4);
  EXPECT_EQ(history.List(2).size(), 2U);
  EXPECT_EQ(history.List(2)[0].id, 4);
  EXPECT_EQ(history.List(2)[0].counts.at("pass"), 2);
  EXPECT_EQ(history.ListCases("nan/a", 10).size(), 4U);
  EXPECT_EQ(history.ListCases("nan/*", 3).size(), 3U);
  EXPECT_TRUE(history.ListCases("nan/c", 3).empty());
  history.SetBaseline("main", 1, "now");
  history.SetBaseline("main", 2, "later");
  history.SetBaseline("gpu", 4, "later");
  ASSERT_EQ(history.Baselines().size(), 2U);
  EXPECT_EQ(history.Baselines()[1].run, 2);
}

TEST(History, RefusesWhatIsNotItsOwnAndSaysWhatToDo) {
  const std::string path = NewPath();
  EXPECT_NE(ErrorOf(path, RunHistory::Mode::kRead).find("'trainwreck run' makes it"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(ErrorOf(path, RunHistory::Mode::kWrite), "");
  {
    const auto database = OpenSqlite(path, 1000);
    database->Execute("PRAGMA user_version = 2");
  }
  for (RunHistory::Mode mode : {RunHistory::Mode::kRead, RunHistory::Mode::kWrite}) {
    const std::string newer = ErrorOf(path, mode);
    EXPECT_NE(newer.find("has schema version 2, this program knows 1"), std::string::npos) << newer;
    EXPECT_NE(newer.find("--history FILE"), std::string::npos) << newer;
  }
  const std::string foreign = NewPath(), text = NewPath();
  fs::create_directories(fs::path(foreign).parent_path());
  {
    const auto database = OpenSqlite(foreign, 1000);
    database->Execute("CREATE TABLE mine(x)");
  }
  EXPECT_NE(ErrorOf(foreign, RunHistory::Mode::kWrite).find("another program's"),
            std::string::npos);
  fs::create_directories(fs::path(text).parent_path());
  std::ofstream(text) << "a diary, not a database, and long enough to be looked at by SQLite\n";
  EXPECT_NE(ErrorOf(text, RunHistory::Mode::kWrite).find("no history of trainwreck"),
            std::string::npos);
  EXPECT_NE(ErrorOf("/proc/nowhere/history.db", RunHistory::Mode::kWrite), "");
}

TEST(History, AHalfTransactionLeavesNothing) {
  const std::string path = NewPath();
  RunHistory history(path, RunHistory::Mode::kWrite);
  history.Add(TestRecord("a", "x"));
  {
    const auto other = DatabaseAt(path);
    Transaction transaction(*other, Database::Access::kWrite);
    other->Execute("DELETE FROM reading");
  }  // not committed
  EXPECT_EQ(history.Load(1)->cases[0].margins.size(), 1U);
}

// Whether each run has all that TestRecord gives it.
void ExpectWhole(const std::string& path, std::size_t at_least) {
  if (!IsServer(path)) {
    const auto database = OpenSqlite(path, 30'000);
    Statement check(*database, "PRAGMA integrity_check");
    ASSERT_TRUE(check.Step());
    EXPECT_EQ(check.Text(0), "ok");
  }
  RunHistory history(path, RunHistory::Mode::kRead);
  const auto runs = history.List(1 << 20);
  EXPECT_GE(runs.size(), at_least);
  for (const RecordSummary& run : runs) {
    const auto record = history.Load(run.id);
    ASSERT_TRUE(record);
    ASSERT_EQ(record->cases.size(), 2U) << run.id;
    for (const CaseRecord& one : record->cases) {
      EXPECT_EQ(one.margins.size(), 1U);
      EXPECT_EQ(one.trainings.size(), 5U);
    }
  }
}

// The numbers of the runs that a writer has been told are stored, one a line.
std::vector<std::int64_t> Acknowledged(const std::string& file) {
  std::vector<std::int64_t> ids;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!stream.eof()) ids.push_back(std::stoll(line));  // a torn last line was not said in full
  }
  return ids;
}

// A process that adds records until it is killed (`records` < 0) or has added so many; it opens
// the file each time, as each invocation does.
pid_t StartWriter(const std::string& path, const std::string& log, int records) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    std::ofstream said(log, std::ios::app);
    for (int i = 0; i != records; ++i) {
      RunHistory history(path, RunHistory::Mode::kWrite);
      said << history.Add(TestRecord("a", "x")) << std::endl;
    }
    _exit(0);
  } catch (const std::exception& error) {
    std::ofstream(log + ".error") << error.what();
    _exit(1);
  }
}

void ExpectAllDone(const std::vector<pid_t>& writers, const std::string& logs) {
  for (std::size_t i = 0; i < writers.size(); ++i) {
    int status = 0;
    ASSERT_EQ(waitpid(writers[i], &status, 0), writers[i]);
    std::ifstream error(logs + std::to_string(i) + ".error");
    std::string why;
    std::getline(error, why);
    EXPECT_EQ(status, 0) << why;
  }
}

// All create the file at once, and nobody is turned away. Many short rounds, since what one writer
// may see half done is done within microseconds.
TEST(History, ManyWritersAtOnceLoseNothing) {
  constexpr int kRounds = 40, kWriters = 6, kRecords = 2;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    const std::string path = NewPath(), logs = NewFolder() + "/log";
    std::vector<pid_t> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.push_back(StartWriter(path, logs + std::to_string(i), kRecords));
    }
    ExpectAllDone(writers, logs);
    ExpectWhole(path, kWriters * kRecords);
    RunHistory history(path, RunHistory::Mode::kRead);
    EXPECT_EQ(history.List(1000).size(), static_cast<std::size_t>(kWriters * kRecords));
  }
}

TEST(History, SurvivesWritersThatAreKilled) {
  const std::string path = NewPath(), folder = NewFolder();
  std::size_t said = 0;
  std::vector<std::string> logs;
  for (int round = 0; round < 20; ++round) {
    std::vector<pid_t> writers;
    for (int i = 0; i < 3; ++i) {
      logs.push_back(folder + "/log" + std::to_string(3 * round + i));
      writers.push_back(StartWriter(path, logs.back(), -1));
    }
    // In the middle of something, each time of another thing: some records after the start.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (Acknowledged(logs.back()).size() < static_cast<std::size_t>(round % 3) &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(700 * round));
    for (pid_t writer : writers) kill(writer, SIGKILL);
    for (pid_t writer : writers) {
      int status = 0;
      ASSERT_EQ(waitpid(writer, &status, 0), writer);
      EXPECT_TRUE(WIFSIGNALED(status)) << "it failed by itself";
    }
  }
  {
    RunHistory history(path, RunHistory::Mode::kWrite);
    history.Add(TestRecord("last", "x"));  // and can be written to afterwards
    for (const std::string& log : logs) {
      for (std::int64_t id : Acknowledged(log)) {
        EXPECT_TRUE(history.Has(id)) << id;
        ++said;
      }
    }
  }
  EXPECT_GT(said, 0U);
  ExpectWhole(path, said + 1);
}

Record RecordAt(const std::string& started_utc, const std::string& host) {
  Record record = TestRecord("abc", "d00d");
  record.started_utc = started_utc;
  record.host = host;
  return record;
}

TEST(History, MergesInTheOrderOfTime) {
  const std::string path = NewPath(), other_path = NewPath();
  RunHistory history(path, RunHistory::Mode::kWrite);
  history.Add(RecordAt("2026-01-01T00:00:00Z", "a"));
  history.Add(RecordAt("2026-01-03T00:00:00Z", "a"));
  RunHistory other(other_path, RunHistory::Mode::kWrite);
  other.Add(RecordAt("2026-01-02T00:00:00Z", "b"));
  Record same = RecordAt("2026-01-01T00:00:00Z", "a");
  same.cases[0].trainings.push_back(same.cases[0].trainings[0]);
  same.cases[0].trainings.back().seed = 9;
  same.cases[0].margins[0].by_seed[9] = 2.5;
  other.SetBaseline("weekly", other.Add(same), "2026-02-01T00:00:00Z");

  const MergeCounts counts = history.MergeFrom(other);
  EXPECT_EQ(counts.added, 1);
  EXPECT_EQ(counts.known, 1);
  EXPECT_EQ(counts.baselines, (std::vector<std::string>{"weekly"}));
  std::vector<std::string> times;
  for (const RecordSummary& one : history.List(10)) times.push_back(one.started_utc);
  EXPECT_EQ(times, (std::vector<std::string>{"2026-01-03T00:00:00Z", "2026-01-02T00:00:00Z",
                                             "2026-01-01T00:00:00Z"}));
  EXPECT_EQ(history.Newest(), 2);
  const auto first = history.Load(1);
  EXPECT_EQ(first->cases[0].margins[0].by_seed.at(9), 2.5);
  EXPECT_EQ(first->cases[0].trainings.size(), 6u);
  EXPECT_EQ(history.Baselines().at(0).run, 1);
  const auto cases = history.ListCases("nan/*", 3);
  ASSERT_EQ(cases.size(), 3u);
  EXPECT_EQ(cases[0].first.id, 2);
  EXPECT_EQ(cases[2].first.id, 3);
  EXPECT_EQ(history.ListCases("nan/a", 1)[0].first.id, 2);  // the one that was added last is older

  const MergeCounts again = history.MergeFrom(other);
  EXPECT_EQ(again.added, 0);
  EXPECT_EQ(again.known, 2);
  EXPECT_TRUE(again.baselines.empty());
  EXPECT_EQ(history.List(10).size(), 3u);
}

// Numbers of runs, with the case's name where it is one.
std::vector<std::string> Pages(RunHistory& history, const std::string& cases, int limit) {
  std::vector<std::string> rows;
  if (cases.empty()) {
    auto page = history.List(limit);
    while (!page.empty()) {
      for (const RecordSummary& run : page) rows.push_back(std::to_string(run.id));
      page = history.List(limit, page.back().id);
    }
    return rows;
  }
  auto page = history.ListCases(cases, limit);
  while (!page.empty()) {
    for (const auto& [run, one] : page) rows.push_back(std::to_string(run.id) + ":" + one.name);
    page =
        history.ListCases(cases, limit, CasePlace{page.back().first.id, page.back().second.name});
  }
  return rows;
}

TEST(History, PagesOfAnySizeAreTheWholeList) {
  const std::string path = NewPath();
  RunHistory history(path, RunHistory::Mode::kWrite);
  // Runs 2, 3 and 5 began in the same second; 4 was merged and is the oldest.
  for (const char* second : {"01", "02", "02", "00", "02", "03"}) {
    history.Add(RecordAt(std::string("2026-01-01T00:00:") + second + "Z", "a"));
  }
  const std::vector<std::string> runs = {"6", "5", "3", "2", "1", "4"};
  std::vector<std::string> cases;
  for (const std::string& run : runs) {
    cases.push_back(run + ":nan/b");
    cases.push_back(run + ":nan/a");
  }
  for (const int limit : {1, 2, 3, 5, 100}) {
    EXPECT_EQ(Pages(history, "", limit), runs) << limit;
    EXPECT_EQ(Pages(history, "nan/*", limit), cases) << limit;
  }
  EXPECT_EQ(history.ListCases("nan/*", 9, CasePlace{2, ""}).size(), 4U);
  EXPECT_THROW(history.List(9, 7), NoSuchRow);
  EXPECT_THROW(history.ListCases("nan/*", 9, CasePlace{2, "nan/c"}), NoSuchRow);
  // An older program lists nothing: what it adds is found nevertheless, and listed by the next.
  DatabaseAt(path)->Execute("DELETE FROM listing WHERE verdict_id > 7");
  EXPECT_EQ(Pages(history, "nan/*", 2), cases);
  history.Add(RecordAt("2025-01-01T00:00:00Z", "a"));
  EXPECT_EQ(DatabaseAt(path)->QueryInteger("SELECT count(*) FROM listing"), 14);
  cases.insert(cases.end(), {"7:nan/b", "7:nan/a"});
  EXPECT_EQ(Pages(history, "nan/*", 3), cases);
}

TEST(History, KeepsItsBaselineWhereAnotherHasTheName) {
  RunHistory history(NewPath(), RunHistory::Mode::kWrite);
  RunHistory other(NewPath(), RunHistory::Mode::kWrite);
  history.SetBaseline("main", history.Add(RecordAt("2026-01-01T00:00:00Z", "a")), "");
  other.SetBaseline("main", other.Add(RecordAt("2026-01-02T00:00:00Z", "b")), "");
  EXPECT_EQ(history.MergeFrom(other).left_out, (std::vector<std::string>{"main"}));
  EXPECT_EQ(history.Baselines().at(0).run, 1);
}

TEST(History, FindsCommitsByTheirFirstDigits) {
  RunHistory history(NewPath(), RunHistory::Mode::kWrite);
  for (const char* commit : {"abcf", "abd0", "abcf"}) history.Add(TestRecord(commit, ""));
  EXPECT_EQ(history.OfCommit("abc"), (std::vector<std::int64_t>{3, 1}));
  EXPECT_EQ(history.OfCommit("abd"), (std::vector<std::int64_t>{2}));
  EXPECT_TRUE(history.OfCommit("abe").empty());
}

}  // namespace history_test
}  // namespace trainwreck
