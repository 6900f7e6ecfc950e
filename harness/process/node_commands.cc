#include "harness/process/node_commands.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>

#include "harness/process/command.h"
#include "harness/protocol/parse_json.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLimitSeconds = "10";
constexpr std::size_t kMostBytes = 2000;  // of what a command prints
constexpr const char* kFileBegin = "undo.rank";

std::string FileName(int rank) { return kFileBegin + std::to_string(rank) + ".json"; }

struct Done {
  int status = 0;
  std::string words;
};

Done RunShell(const std::string& text) {
  CommandOptions options;
  options.captures_errors = true;
  options.ignores_interruption = true;
  CommandResult result = RunCommand({"timeout", kLimitSeconds, "sh", "-c", text}, options);
  while (!result.out.empty() && result.out.back() == '\n') result.out.pop_back();
  if (result.out.size() > kMostBytes) result.out.resize(kMostBytes);
  return {result.status, std::move(result.out)};
}

void Undo(const std::string& command) {
  const Done done = RunShell(command);
  if (done.status == 0) return;
  std::cerr << "trainwreck: to undo a fault of this machine, '" << command
            << "' was run; it ended with " << done.status << ": " << done.words << "\n";
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

Json ToJson(const NodeCommand& command) {
  return {{"run", command.run},
          {"undo", command.undo},
          {"probe", command.probe},
          {"seconds", command.seconds}};
}

NodeCommand NodeCommandFromJson(const Json& json) {
  return {json.at("run").get<std::string>(), json.at("undo").get<std::string>(),
          json.at("probe").get<std::string>(), json.at("seconds").get<double>()};
}

NodeCommands::NodeCommands(const std::string& run_folder, int rank)
    : file_(run_folder + "/" + FileName(rank)) {}

void NodeCommands::WriteFile() const {
  std::error_code error;
  if (undo_.empty()) {
    fs::remove(file_, error);
    return;
  }
  Json commands = Json::array();
  for (const auto& [when, command] : undo_) commands.push_back(command);
  std::ofstream(file_) << Json{{"host", HostName()}, {"commands", std::move(commands)}}.dump()
                       << "\n";
}

NodeAnswer NodeCommands::Run(const NodeCommand& command) {
  NodeAnswer answer;
  answer.before = RunShell(command.probe).words;
  if (!command.undo.empty()) {
    const std::chrono::duration<double> length(command.seconds);
    undo_.emplace_back(command.seconds > 0
                           ? Clock::now() + std::chrono::duration_cast<Clock::duration>(length)
                           : Clock::time_point::max(),
                       command.undo);
    WriteFile();  // before: who is killed in the next line has left it
  }
  Done done = RunShell(command.run);
  answer.status = done.status;
  answer.words = std::move(done.words);
  answer.after = RunShell(command.probe).words;
  return answer;
}

void NodeCommands::UndoDue(Clock::time_point now) {
  const std::size_t before = undo_.size();
  std::erase_if(undo_, [&](const auto& one) {
    if (one.first > now) return false;
    Undo(one.second);
    return true;
  });
  if (undo_.size() != before) WriteFile();
}

void UndoLeft(const std::string& run_folder, std::optional<int> rank) {
  std::error_code error;
  for (fs::directory_iterator entry(run_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (rank ? name != FileName(*rank) : name.rfind(kFileBegin, 0) != 0) continue;
    std::ifstream file(entry->path());
    std::stringstream text;
    text << file.rdbuf();
    const Json json = TryParseJson(text.str());
    if (!json.is_object() || json.value("host", "") != HostName()) continue;
    for (const std::string& command : json.value("commands", std::vector<std::string>())) {
      Undo(command);
    }
    std::error_code ignored;
    fs::remove(entry->path(), ignored);
  }
}

}  // namespace trainwreck
