#include "harness/session/recording.h"

#include <sys/statfs.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "harness/history/comparison.h"
#include "harness/history/postgres.h"
#include "harness/session/provenance.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShortestHash = 7;
constexpr std::size_t kLongestNumber = 9;

// Whether somebody named the history; the default may be missing on a disk that cannot be written.
bool IsAskedFor(const std::string& option) {
  return !option.empty() || std::getenv("TRAINWRECK_HISTORY") != nullptr;
}

std::vector<std::int64_t> FindBaseline(RunHistory& history, const std::string& name) {
  std::string known;
  for (const Baseline& baseline : history.Baselines()) {
    if (baseline.name == name) return {baseline.run};
    known += (known.empty() ? "; there are: " : ", ") + baseline.name;
  }
  throw UsageError("no baseline '" + name + "'" + known +
                   " ('trainwreck baseline set RUN' sets one)");
}

// A file, or a folder with one in it; empty when `word` is neither.
std::string VerdictsFile(const std::string& word) {
  std::error_code error;
  if (fs::is_regular_file(word, error)) return word;
  for (const std::string& folder : {word, std::string(kRunsFolder) + "/" + word}) {
    if (word != "latest" && fs::is_regular_file(folder + "/verdicts.json", error)) {
      return folder + "/verdicts.json";
    }
  }
  return "";
}

}  // namespace

std::string HistoryPath(const std::string& option) {
  const char* variable = std::getenv("TRAINWRECK_HISTORY");
  std::string path = !option.empty() ? option : variable != nullptr ? variable : kHistoryFile;
  return path == "none" ? "" : path;
}

std::string NameOfSharedFileSystem(std::int64_t type) {
  static const std::map<std::int64_t, std::string> kNames = {
      {0x6969, "NFS"},        {0x517b, "SMB"},      {0xfe534d42, "SMB"},    {0xff534d42, "CIFS"},
      {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}, {0x00c36400, "Ceph"},
      {0x5346414f, "AFS"},    {0x01161970, "GFS2"}, {0x7461636f, "OCFS2"},  {0x65735546, "FUSE"},
      {0x01021997, "9P"},
  };
  const auto found = kNames.find(type);
  return found == kNames.end() ? "" : found->second;
}

// SQLite's locks and its shared memory work on one machine alone. The file may not be there yet.
void WarnOfSharedHistory(const std::string& option) {
  const std::string path = HistoryPath(option);
  if (path.empty() || IsServer(path)) return;
  struct statfs info {};
  fs::path there = fs::absolute(path);
  while (statfs(there.c_str(), &info) != 0) {
    if (there == there.parent_path()) return;
    there = there.parent_path();
  }
  const std::string name = NameOfSharedFileSystem(static_cast<std::uint32_t>(info.f_type));
  if (name.empty()) return;
  std::cerr << "trainwreck: warning: " << path << " is on " << name
            << ", where a history is safe with writers of one machine alone: give each machine a "
               "file and call 'trainwreck history merge', or name a server, --history "
               "postgresql://HOST/DATABASE\n";
}

void CheckHistory(const std::string& option) {
  WarnOfSharedHistory(option);
  const std::string path = HistoryPath(option);
  if (path.empty() || !IsAskedFor(option)) return;
  try {
    RunHistory history(path, RunHistory::Mode::kWrite);
  } catch (const HistoryError& error) {
    throw ConfigurationError(error.what());
  }
}

void AddToHistory(const std::string& option, const std::vector<Verdict>& verdicts,
                  const RunInfo& info) {
  const std::string path = HistoryPath(option);
  if (path.empty() || verdicts.empty()) return;
  try {
    RunHistory history(path, RunHistory::Mode::kWrite);
    const std::int64_t id = history.Add(MakeRecord(verdicts, info));
    std::cout << "# history: run " << id << " in " << path << "\n" << std::flush;
  } catch (const std::runtime_error& error) {
    std::cerr << "trainwreck: warning: not in the history: " << error.what() << "\n";
  }
}

void AddSeedsToHistory(const std::string& option, std::int64_t run, const Record& more) {
  const std::string path = HistoryPath(option);
  if (path.empty() || run <= 0) return;
  try {
    RunHistory history(path, RunHistory::Mode::kWrite);
    history.AddSeeds(run, more);
  } catch (const std::runtime_error& error) {
    std::cerr << "trainwreck: warning: not in the history: " << error.what() << "\n";
  }
}

std::unique_ptr<RunHistory> OpenHistory(const std::string& option) {
  const std::string path = HistoryPath(option);
  if (path.empty()) throw UsageError("--history none leaves nothing to read");
  try {
    return std::make_unique<RunHistory>(path, RunHistory::Mode::kRead);
  } catch (const HistoryError& error) {
    throw ConfigurationError(error.what());
  }
}

std::unique_ptr<RunHistory> FindHistory(const std::string& option) {
  const std::string path = HistoryPath(option);
  if (path.empty() || !RunHistory::MayBeThere(path)) return nullptr;
  try {
    return std::make_unique<RunHistory>(path, RunHistory::Mode::kRead);
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

std::vector<std::int64_t> FindRuns(RunHistory& history, const std::string& word) {
  if (word == "latest") {
    if (const auto newest = history.Newest()) return {*newest};
    throw UsageError("the history holds no run yet");
  }
  if (word == "baseline") return FindBaseline(history, "main");
  if (word.rfind("baseline:", 0) == 0) return FindBaseline(history, word.substr(9));
  const bool is_number =
      word.size() <= kLongestNumber && word.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && !word.empty()) {
    if (const std::int64_t id = std::stoll(word); history.Has(id)) return {id};
    if (word.size() < kShortestHash) throw UsageError("the history has no run " + word);
  }
  const std::string hash = ResolveRevision(word);
  const bool may_be_hash =
      word.size() >= kShortestHash && word.find_first_not_of("0123456789abcdef") == word.npos;
  if (hash.empty() && !may_be_hash) {
    throw UsageError("'" + word +
                     "' is no file with verdicts, no run of the history, no baseline "
                     "and no revision of this repository");
  }
  std::vector<std::int64_t> ids = history.OfCommit(hash.empty() ? word : hash);
  if (ids.empty()) {
    throw UsageError("the history has no run of commit " + (hash.empty() ? word : hash) +
                     " without uncommitted changes ('trainwreck history' lists what it has)");
  }
  return ids;
}

Record LoadSide(const std::string& word, const std::string& history_option) {
  if (const std::string file = VerdictsFile(word); !file.empty()) {
    try {
      const StoredReport stored = ReadJsonReport(file);
      Record record = MakeRecord(stored.verdicts, stored.info);
      // Where it lies now: its curves are beside it.
      const std::filesystem::path folder = std::filesystem::path(file).parent_path();
      if (!folder.empty()) record.output_dir = folder.string();
      return Combine({std::move(record)});
    } catch (const std::exception& error) {
      throw ConfigurationError(error.what());
    }
  }
  const auto history = OpenHistory(history_option);
  std::vector<Record> records;
  for (const std::int64_t id : FindRuns(*history, word)) {
    if (auto record = history->Load(id)) records.push_back(std::move(*record));
  }
  if (records.empty()) throw UsageError("the history has lost what '" + word + "' names");
  return Combine(records);
}

}  // namespace trainwreck
