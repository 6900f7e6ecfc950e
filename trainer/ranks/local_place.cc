#include "trainer/ranks/local_place.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainwreck {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The number that `text` begins with, which is taken off; empty: it begins with none.
std::optional<int> TakeNumber(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Of the first of these variables that is set; empty: none is.
std::optional<int> NumberOf(const std::vector<const char*>& names) {
  for (const char* name : names) {
    const std::string value = Variable(name);
    if (value.empty()) continue;
    std::string_view rest = value;
    const std::optional<int> number = TakeNumber(rest);
    if (!number || !rest.empty()) throw RecipeError(std::string(name) + " is no rank: " + value);
    return number;
  }
  return std::nullopt;
}

// "2(x3),1": two tasks on each of the first three nodes, one on the fourth.
std::optional<int> TasksOfNode(std::string_view text, int node) {
  while (const std::optional<int> tasks = TakeNumber(text)) {
    int nodes = 1;
    if (text.starts_with("(x")) {
      text.remove_prefix(2);
      nodes = TakeNumber(text).value_or(0);
      if (!text.starts_with(")")) return std::nullopt;
      text.remove_prefix(1);
    }
    if (node < nodes) return tasks;
    node -= nodes;
    if (!text.starts_with(",")) return std::nullopt;
    text.remove_prefix(1);
  }
  return std::nullopt;
}

}  // namespace

LocalPlace LocalPlaceOf(RankLauncher launcher, int rank, int world_size) {
  std::optional<int> local_rank, local_size;
  switch (launcher) {
    case RankLauncher::kMpirun:
      local_rank = NumberOf({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"});
      local_size = NumberOf({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"});
      break;
    case RankLauncher::kSrun:
      local_rank = NumberOf({"SLURM_LOCALID"});
      if (const std::optional<int> node = NumberOf({"SLURM_NODEID"})) {
        local_size = TasksOfNode(Variable("SLURM_STEP_TASKS_PER_NODE"), *node);
      }
      break;
    case RankLauncher::kOwn:
    case RankLauncher::kTorchrun:
      local_rank = NumberOf({"LOCAL_RANK"});
      local_size = NumberOf({"LOCAL_WORLD_SIZE"});
      break;
  }
  const LocalPlace place{local_rank.value_or(rank), local_size.value_or(world_size)};
  if (place.rank >= place.world_size || place.world_size > world_size) {
    throw RecipeError("the launcher says that this is rank " + std::to_string(place.rank) + " of " +
                      std::to_string(place.world_size) + " of its machine, and of " +
                      std::to_string(world_size) + " in all");
  }
  return place;
}

}  // namespace trainwreck
