// Recipe -> parts of the loop, in the order of Parts; each part passes through the wrappers as soon
// as it is built, so that later parts are made from the wrapped ones.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/protocol/plan.h"
#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"
#include "trainer/telemetry/telemetry.h"

namespace trainwreck {

using Wrappers = std::vector<std::unique_ptr<PartWrapper>>;

std::shared_ptr<Model> BuildModel(const TrainingRecipe& recipe, const Dataset& data,
                                  std::uint64_t seed);
std::unique_ptr<Dataset> BuildDataset(const TrainingRecipe& recipe, bool held_out,
                                      std::uint64_t seed);
// The training data, with the targets changed as the recipe says.
std::unique_ptr<Dataset> PrepareTargets(const DataRecipe& recipe, std::unique_ptr<Dataset> data);
// The update rule alone.
std::unique_ptr<Optimizer> BuildOptimizer(const OptimizerRecipe& recipe, NamedTensors parameters);
// The whole optimizer, with masters and with the update in the backward pass where the recipe has
// them.
std::unique_ptr<Optimizer> BuildOptimizer(const TrainingRecipe& recipe,
                                          const NamedTensors& parameters);

// Runs one small training step with each update rule and an evaluation, only to fill LibTorch's
// caches. Without `with_backward`, only the evaluation.
void WarmUpParts(TrainingRecipe recipe, bool with_backward);

// Makes the wrappers of one process; they may keep `clock` and `events`.
using WrapperFactory = std::function<Wrappers(const Plan& plan, int rank, int world_size,
                                              const Clock& clock, EventSink& events)>;

// What the event device_opened says of LibTorch's settings for this kind of device.
Json SettingsOf(at::DeviceType kind, const TrainingRecipe& recipe);

// Runs one rank in this process: builds, trains, writes rank<k>.jsonl into `trace_dir`. Returns the
// exit code: 0 completed, 1 an exception (its message on stderr and in the trace), 2 a bad plan, 3
// a guard stopped it.
int Train(const Plan& plan, int rank, int world_size, const std::string& trace_dir,
          const WrapperFactory& make_wrappers = nullptr);

}  // namespace trainwreck
