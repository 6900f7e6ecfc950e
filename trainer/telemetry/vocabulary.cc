#include "trainer/telemetry/vocabulary.h"

#include <utility>

#include "trainer/events.h"
#include "trainer/recipe/recipe.h"
#include "trainer/telemetry/step_signals.h"
#include "trainer/telemetry/tensor_signals.h"

namespace trainwreck {
namespace {

void AddTensorSignals(std::vector<SignalInfo>& signals) {
  const auto add = [&](const char* family, const char* of_what, bool with_norm,
                       bool sparse = false) {
    for (SignalInfo& signal : FamilySignals(family, of_what, with_norm)) {
      signal.sparse = sparse;
      signals.push_back(std::move(signal));
    }
  };
  add("act", "a module's output in the step's forward passes; {glob} over modules", true);
  add("grad", "the gradient before clipping; {glob} over parameters", false);
  add("param", "the parameters after the step; {glob} over them", false);
  add("update", "the change that the step made; {glob} over parameters", false);
  add("initial", "the parameters that the run began with, in its first record; {glob} over them",
      true, /*sparse=*/true);
}

}  // namespace

std::vector<SignalInfo> TrainerSignals() {
  std::vector<SignalInfo> signals;
  for (const StepSignal& signal : StepSignals()) signals.push_back(signal.info);
  for (const ChangeSignal& signal : ChangeSignals()) signals.push_back(signal.info);
  signals.push_back(ParameterDigest());
  AddTensorSignals(signals);
  return signals;
}

TargetDescription DescribeTrainer(std::vector<FaultInfo> faults) {
  TargetDescription description;
  description.name = "trainwreck-trainer";
  description.version = kTrainerVersion;
  description.recipe = RecipeKeys();
  description.signals = TrainerSignals();
  description.events = TrainerEvents();
  for (EventInfo& event : description.events) {
    event.on_demand = event.name == "batch" || event.name == events::kMemoryByStage.name() ||
                      event.name == events::kMemoryMoments.name();
  }
  description.faults = std::move(faults);
  description.features = {"device:cpu", "backend:gloo", "fork-server"};
  return description;
}

}  // namespace trainwreck
