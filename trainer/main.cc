// trainwreck-trainer: the reference target.
//   --describe      prints what it can do, as JSON
//   (no argument)   one rank of one run: TRAINWRECK_PLAN, TRAINWRECK_TRACE, RANK, WORLD_SIZE
//   --fork-server   serves forks of a warm process over the socket TRAINWRECK_SPAWN_FD
//   (process/spawn.h)
#include <ATen/Parallel.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/process/spawn.h"
#include "injectors/injector.h"
#include "trainer/build.h"
#include "trainer/devices/cpu_memory.h"
#include "trainer/devices/device.h"
#include "trainer/recipe/model_kinds.h"
#include "trainer/telemetry/vocabulary.h"

namespace trainwreck {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw RecipeError(std::string(name) + " is not set");
  return value;
}

// The variables in which a launcher tells a process its rank, or the number of ranks. Open MPI and
// MPICH have names of their own.
struct LauncherVariables {
  std::vector<const char*> rank;
  std::vector<const char*> world_size;
};

LauncherVariables VariablesOf(RankLauncher launcher) {
  switch (launcher) {
    case RankLauncher::kMpirun:
      return {{"OMPI_COMM_WORLD_RANK", "PMI_RANK"}, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}};
    case RankLauncher::kSrun:
      return {{"SLURM_PROCID"}, {"SLURM_NTASKS"}};
    case RankLauncher::kOwn:
    case RankLauncher::kTorchrun:
      return {{"RANK"}, {"WORLD_SIZE"}};
  }
  return {};
}

int NumberFromEnvironment(const std::vector<const char*>& names, RankLauncher launcher,
                          int fallback) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    char* end = nullptr;
    const long number = std::strtol(value, &end, 10);
    if (*value == 0 || *end != 0 || number < 0 || number > 1 << 16) {
      throw RecipeError(std::string(name) + " is no rank: " + value);
    }
    return static_cast<int>(number);
  }
  if (launcher == RankLauncher::kOwn) return fallback;
  throw RecipeError(std::string(names.front()) +
                    " is not set: parallel.launcher names a launcher that has not started this "
                    "process");
}

RankLauncher LauncherOf(const Plan& plan) {
  constexpr char kKey[] = "parallel.launcher";
  const auto value = plan.recipe.find(kKey);
  if (value == plan.recipe.end()) return RankLauncher::kOwn;
  return ParseRecipe({{kKey, value->second}}).parallel_launcher;
}

Plan ReadPlan(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw RecipeError("cannot read the plan " + path);
  std::ostringstream text;
  text << file.rdbuf();
  try {
    return PlanFromJson(Json::parse(text.str()));
  } catch (const std::exception& error) {
    throw RecipeError(path + ": " + error.what());
  }
}

Wrappers MakeWrappers(const Plan& plan, int rank, int world_size, const Clock& clock,
                      EventSink& events) {
  const InjectorContext context{
      &clock, &events, rank, world_size, plan.seed, &plan.recipe, plan.checkpoint_dir};
  Wrappers wrappers;
  for (auto& injector : MakeInjectors(plan.faults, context)) {
    wrappers.push_back(std::move(injector));
  }
  return wrappers;
}

int RunRank() {
  try {
    const Plan plan = ReadPlan(Environment("TRAINWRECK_PLAN"));
    const RankLauncher launcher = LauncherOf(plan);
    const LauncherVariables variables = VariablesOf(launcher);
    const int rank = NumberFromEnvironment(variables.rank, launcher, 0);
    const int world_size = NumberFromEnvironment(variables.world_size, launcher, 1);
    return Train(plan, rank, world_size, Environment("TRAINWRECK_TRACE"), MakeWrappers);
  } catch (const RecipeError& error) {
    std::cerr << "trainwreck-trainer: " << error.what() << std::endl;
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "trainwreck-trainer: " << error.what() << std::endl;
    return 1;
  }
}

int Describe() {
  std::vector<FaultInfo> faults;
  for (const auto& [name, fault] : FaultRegistry()) faults.push_back(fault.info);
  TargetDescription description = DescribeTrainer(std::move(faults));
  description.devices = ListDevices();
  for (const DeviceKind& kind : AcceleratorKinds()) {
    if (description.CountDevices(ToString(kind.choice)) == 0) continue;
    description.features.push_back(std::string("device:") + ToString(kind.choice));
    description.features.push_back("backend:" + kind.backend);
  }
  std::cout << ToJson(description).dump(2) << std::endl;
  return 0;
}

// Forward, backward and update of every model, so that every fork finds LibTorch's kernels,
// dispatch tables and caches ready. Leaves nothing that a run could see: its parts are built and
// seeded anew. A program with accelerators only goes forward: the first backward pass asks each of
// their drivers for its devices and starts a thread for each, and a child cannot use either.
void WarmUp() {
  for (const auto& [name, kind] : ModelKinds()) {
    const TrainingRecipe recipe = ParseRecipe(
        {{"model.kind", name}, {"data.kind", kind.takes_tokens ? "markov" : "features"}});
    WarmUpParts(recipe, /*with_backward=*/AcceleratorKinds().empty());
  }
  malloc_trim(0);  // what is free is no page of a fork, and no fork has to tidy the heap
}

int ServeForks() {
  const int fd = std::atoi(Environment("TRAINWRECK_SPAWN_FD").c_str());
  WarmUp();
  return ServeSpawns(fd, [](const SpawnRequest&) { return RunRank(); });
}

// What a step frees, the next one uses again. Otherwise glibc hands large tensors back to the
// kernel, which has to find and zero their pages anew in every step.
void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int Main(int argc, char** argv) {
  KeepFreedMemory();
  // Before LibTorch makes a thread pool: forks would not have its threads, and sums would depend on
  // their number.
  at::set_num_threads(1);
  CountCpuMemory();
  const std::string verb = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!verb.empty() && verb != "--describe" && verb != "--fork-server")) {
    std::cerr << "usage: trainwreck-trainer [--describe | --fork-server]\n";
    return 2;
  }
  if (verb == "--describe") return Describe();
  if (verb == "--fork-server") return ServeForks();
  return RunRank();
}

}  // namespace
}  // namespace trainwreck

int main(int argc, char** argv) {
  const int code = trainwreck::Main(argc, argv);
  // Not by exit(): LibTorch's and Gloo's destructors could wait for peers that are gone.
  std::cout.flush();
  std::cerr.flush();
  _exit(code);
}
