#include "harness/session/storage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "harness/protocol/parse_json.h"
#include "harness/protocol/trace_reader.h"
#include "harness/session/session.h"
#include "harness/text/clean_text.h"
#include "harness/text/files.h"

namespace trainwreck {

namespace fs = std::filesystem;

namespace {

std::string UtcTime() {
  std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H-%M-%SZ", &parts);
  return text;
}

// A link beside, renamed over the old one: `latest` is never missing.
void PointLatestTo(const fs::path& folder) {
  fs::path temporary = folder.parent_path() / ("latest." + std::to_string(getpid()));
  std::error_code ignored;
  fs::remove(temporary, ignored);
  fs::create_directory_symlink(folder.filename(), temporary);
  fs::rename(temporary, folder.parent_path() / "latest");
}

// Released by our death, whatever it is of; the processes of runs do not have the descriptor.
void Lock(const std::string& folder) {
  static int held = -1;  // an invocation writes to one folder at a time
  if (held >= 0) close(held);
  const std::string path = folder + "/.lock";
  held = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (held < 0) {
    throw ConfigurationError("cannot write to the output folder '" + folder +
                             "': " + std::strerror(errno));
  }
  // Some file systems have no locks: then nobody can be told.
  if (flock(held, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw ConfigurationError("another trainwreck is writing to the output folder '" + folder +
                             "': wait until it has ended, or name another one with --output DIR");
  }
}

}  // namespace

std::string UtcNow() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string MakeOutputFolder(const std::string& wanted, bool is_latest) {
  try {
    if (!wanted.empty()) {
      fs::create_directories(wanted);
      Lock(wanted);
      return wanted;
    }
    fs::create_directories(kRunsFolder);
    const std::string base = std::string(kRunsFolder) + "/" + UtcTime();
    for (int number = 1;; ++number) {
      std::string folder = number == 1 ? base : base + "-" + std::to_string(number);
      if (!fs::create_directory(folder)) continue;  // another invocation has it
      Lock(folder);
      if (is_latest) PointLatestTo(folder);
      return folder;
    }
  } catch (const fs::filesystem_error& error) {
    throw ConfigurationError(std::string("cannot make the output folder: ") + error.what());
  }
}

void WriteWholeFile(const std::string& path, const std::string& text) {
  fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder);
  const std::string temporary = path + ".tmp." + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(temporary.c_str());
    throw std::system_error(error, std::generic_category(), "cannot write " + path);
  }
}

std::string ReadWholeFile(const std::string& path) {
  std::optional<std::string> text = ReadFile(path);
  if (!text) throw std::runtime_error("cannot read " + path + ": " + std::strerror(errno));
  return std::move(*text);
}

void CheckWritable(const std::string& path, const std::string& option) {
  auto refuse = [&](const std::string& why) {
    throw ConfigurationError(option + ": '" + path + "' cannot be written: " + why +
                             "; nothing was run");
  };
  if (path.empty()) refuse("it has no name");
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) refuse(error.message());
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) refuse("it is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // /dev/stdout, a FIFO
    if (access(path.c_str(), W_OK) != 0) refuse(std::strerror(errno));
    return;
  }
  // As it will be written: beside, and renamed.
  const std::string beside = path + ".tmp." + std::to_string(getpid());
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) refuse(std::strerror(errno));
  close(fd);
  unlink(beside.c_str());
}

Json ToJson(const Run& run) {
  Json json = {{"id", run.id},
               {"scenario", run.scenario},
               {"point", run.point},
               {"arm", run.arm},
               {"kind", static_cast<int>(run.kind)},
               {"kind_name", ToString(run.kind)},
               {"seed", run.seed},
               {"plan", ToJson(run.plan)},
               {"phases", Json::array()},
               {"amendments", Json::array()},
               {"ranks", run.ranks},
               {"first_ranks", run.first_ranks},
               {"resume_ranks", run.resume_ranks},
               {"launcher", run.launcher},
               {"processes", run.processes},
               {"steps", run.steps},
               {"policy",
                {{"max_restarts", run.policy.max_restarts},
                 {"backoff_seconds", run.policy.backoff_seconds},
                 {"window_seconds", run.policy.window_seconds},
                 {"seconds", run.policy.seconds},
                 {"stall_seconds", run.policy.stall_seconds},
                 {"has_seconds", run.policy.has_seconds},
                 {"has_stall_seconds", run.policy.has_stall_seconds}}},
               {"cost", run.cost}};
  for (const Phase& phase : run.phases) {
    json["phases"].push_back(
        {{"name", phase.name}, {"until", phase.until ? Json(*phase.until) : Json()}});
  }
  if (!run.later_changes.empty()) json["later_changes"] = run.later_changes;
  if (run.first_recipe != nullptr) json["first_recipe"] = *run.first_recipe;
  for (const AppliedAmendment& amendment : run.amendments) {
    json["amendments"].push_back({{"fault_id", amendment.fault_id},
                                  {"fault", amendment.fault},
                                  {"key", amendment.key},
                                  {"before", amendment.before},
                                  {"after", amendment.after}});
  }
  return json;
}

Run RunFromJson(const Json& json) {
  Run run;
  run.id = json.at("id").get<std::string>();
  run.scenario = json.at("scenario").get<std::string>();
  run.point = json.at("point").get<std::string>();
  run.arm = json.at("arm").get<std::string>();
  run.kind = static_cast<ArmKind>(json.at("kind").get<int>());
  run.seed = json.at("seed").get<int>();
  run.plan = PlanFromJson(json.at("plan"));
  for (const Json& item : json.at("phases")) {
    Phase phase{.name = item.at("name").get<std::string>(), .until = std::nullopt};
    if (!item.at("until").is_null()) phase.until = item.at("until").get<int>();
    run.phases.push_back(phase);
  }
  if (json.contains("later_changes")) run.later_changes = json["later_changes"].get<Recipe>();
  if (json.contains("first_recipe")) {
    run.first_recipe = std::make_shared<const Recipe>(json["first_recipe"].get<Recipe>());
  }
  for (const Json& item : json.at("amendments")) {
    run.amendments.push_back({.fault_id = item.at("fault_id").get<std::string>(),
                              .fault = item.at("fault").get<std::string>(),
                              .key = item.at("key").get<std::string>(),
                              .before = item.at("before"),
                              .after = item.at("after")});
  }
  run.ranks = json.at("ranks").get<int>();
  run.first_ranks = json.value("first_ranks", 0);
  run.resume_ranks = json.value("resume_ranks", 0);
  run.launcher = json.value("launcher", "");
  run.processes = json.value("processes", 0);
  run.steps = json.at("steps").get<int>();
  const Json& policy = json.at("policy");
  run.policy.max_restarts = policy.at("max_restarts").get<int>();
  run.policy.backoff_seconds = policy.value("backoff_seconds", 0.0);
  run.policy.window_seconds = policy.value("window_seconds", 0.0);
  run.policy.seconds = policy.at("seconds").get<double>();
  run.policy.stall_seconds = policy.at("stall_seconds").get<double>();
  run.policy.has_seconds = policy.value("has_seconds", true);
  run.policy.has_stall_seconds = policy.value("has_stall_seconds", true);
  run.cost = json.at("cost").get<double>();
  return run;
}

void StoreRun(const Run& run, const RunResult& result) {
  Json json = ToJson(run);
  json["end"] = ToString(result.end);
  json["detail"] = result.detail;
  try {
    WriteWholeFile(result.folder + "/run.json",
                   json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (const std::system_error& error) {
    static bool is_said = false;
    if (!is_said) {
      std::cerr << "trainwreck: warning: runs are not kept whole: " << CleanText(error.what())
                << "\n";
    }
    is_said = true;
  }
}

StoredRun LoadStoredRun(const std::string& folder) {
  try {
    Json json = ParseJson(ReadWholeFile(folder + "/run.json"));
    return {RunFromJson(json), FindRunEnd(json.value("end", "")), json.value("detail", "")};
  } catch (const std::exception& error) {
    throw ConfigurationError("'" + folder + "' holds no stored run: " + error.what());
  }
}

// Folders of runs lie in folders of their arms, points, scenarios.
void RemoveRunFolder(const std::string& folder, const std::string& root) {
  std::error_code error;
  if (folder.empty()) return;
  fs::remove_all(folder, error);
  const fs::path stop = fs::path(root).lexically_normal();
  for (fs::path at = fs::path(folder).lexically_normal().parent_path(); at.has_parent_path();
       at = at.parent_path()) {
    if (at == stop || !fs::is_empty(at, error) || error) return;
    fs::remove(at, error);
  }
}

void StoreDescription(const std::string& output_folder, const TargetDescription& description) {
  WriteWholeFile(output_folder + "/target.json", ToJson(description).dump(1) + "\n");
}

std::optional<TargetDescription> FindStoredDescription(const std::string& folder) {
  std::error_code error;
  fs::path at = fs::weakly_canonical(folder, error);
  for (int up = 0; !error && up < 12; ++up, at = at.parent_path()) {
    fs::path file = at / "target.json";
    if (fs::is_regular_file(file)) {
      try {
        return DescriptionFromJson(ParseJson(ReadWholeFile(file.string())));
      } catch (const std::exception& bad) {
        throw ConfigurationError(file.string() + ": " + bad.what());
      }
    }
    if (at == at.parent_path()) break;
  }
  return std::nullopt;
}

namespace {

// Newest first.
std::vector<fs::path> Invocations() {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kRunsFolder, error)) {
    if (entry.is_directory() && !entry.is_symlink()) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end(), [](const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    auto time_a = fs::last_write_time(a, ignored), time_b = fs::last_write_time(b, ignored);
    return std::pair(time_a, a) > std::pair(time_b, b);
  });
  return folders;
}

}  // namespace

std::string FindRunFolder(const std::string& folder_or_id) {
  std::error_code error;
  if (fs::is_directory(folder_or_id, error)) return folder_or_id;
  std::vector<fs::path> invocations = Invocations();
  for (const fs::path& invocation : invocations) {
    fs::path folder = invocation / folder_or_id;
    if (fs::is_regular_file(folder / "run.json", error)) return folder.string();
  }
  throw UsageError("no stored run '" + folder_or_id +
                   "': neither a folder nor a run of one of the " +
                   std::to_string(invocations.size()) + " invocations under " + kRunsFolder +
                   " ('trainwreck run --keep all' keeps the folders of passing runs too)");
}

std::string FindOutputFolder(const std::string& folder_or_latest) {
  std::error_code error;
  if (fs::is_directory(folder_or_latest, error)) return folder_or_latest;
  std::string below = std::string(kRunsFolder) + "/" + folder_or_latest;
  if (fs::is_directory(below, error)) return below;
  throw UsageError("no folder '" + folder_or_latest + "', here or under " + kRunsFolder);
}

std::string StoredSignalName(const std::string& folder, const std::string& signal) {
  const std::string name = signal.substr(0, signal.find('{'));
  const std::optional<TargetDescription> target = FindStoredDescription(folder);
  const SignalInfo* info = target ? target->FindSignal(name) : nullptr;
  return info == nullptr ? signal : info->name + signal.substr(name.size());
}

RunTrace LoadTrace(const std::string& folder, int world_size, int planned_steps,
                   std::vector<std::string>* problems) {
  TraceReader reader(folder, world_size, planned_steps);
  reader.Poll(/*last=*/true);
  if (problems != nullptr) *problems = reader.problems();
  return std::move(reader.mutable_trace());
}

}  // namespace trainwreck
