#include "harness/launch/shared_phases.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "harness/protocol/digest.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// Of all that the first phase depends on; empty: it is made by this run alone.
std::string DigestOfFirst(const Run& run) {
  if (!run.copies_first_phase) return "";
  Plan plan = FirstPlan(run);
  plan.run = plan.scenario = plan.point = plan.arm = "";
  // With the number of the seed: a scenario may repeat one seed to see what differs.
  const Json all = {ToJson(plan),    run.seed,      run.environment,
                    run.first_ranks, run.processes, run.launcher};
  return DigestText(all.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// What a run of its own has of its own.
bool IsOfTheRun(const fs::path& path) {
  const std::string name = path.filename();
  return name == "launcher.jsonl" || name.rfind("rendezvous.", 0) == 0;
}

void CopyFolder(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    if (IsOfTheRun(entry.path())) continue;
    fs::copy(entry.path(), to / entry.path().filename(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
}

}  // namespace

SharedPhases::SharedPhases(std::string folder, const std::vector<const Run*>& runs)
    : folder_(std::move(folder)) {
  for (const Run* run : runs) {
    const std::string digest = DigestOfFirst(*run);
    if (digest.empty()) continue;
    Phase& phase = phases_[digest];
    phase.folder = (fs::path(folder_) / digest).string();
    ++phase.users;
    phase_of_[run] = &phase;
  }
  std::erase_if(phase_of_, [](const auto& entry) { return entry.second->users < 2; });
}

SharedPhases::~SharedPhases() {
  std::error_code ignored;
  if (!phase_of_.empty()) fs::remove_all(folder_, ignored);
}

bool SharedPhases::MustWait(const Run& run) const {
  const Phase* phase = Find(run);
  return phase != nullptr && phase->made_by.empty() && phase->maker != nullptr;
}

void SharedPhases::Begin(const Run& run) {
  Phase* phase = Find(run);
  if (phase != nullptr && phase->made_by.empty()) phase->maker = &run;
}

std::string SharedPhases::CopyInto(const Run& run, const std::string& folder) const {
  const Phase* phase = Find(run);
  if (phase == nullptr || phase->made_by.empty()) return "";
  CopyFolder(phase->folder, folder);
  return phase->made_by;
}

void SharedPhases::Keep(const Run& run, const std::string& folder) {
  Phase* phase = Find(run);
  if (phase == nullptr || phase->maker != &run) return;
  CopyFolder(folder, phase->folder);
  phase->made_by = run.id;
}

void SharedPhases::End(const Run& run) {
  Phase* phase = Find(run);
  if (phase == nullptr) return;
  if (phase->maker == &run) phase->maker = nullptr;
  std::error_code ignored;
  if (--phase->users == 0) fs::remove_all(phase->folder, ignored);
}

SharedPhases::Phase* SharedPhases::Find(const Run& run) const {
  const auto found = phase_of_.find(&run);
  return found == phase_of_.end() ? nullptr : found->second;
}

}  // namespace trainwreck
