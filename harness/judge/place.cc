#include "harness/judge/place.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "harness/formula/formula.h"
#include "harness/launch/trace_bits.h"
#include "harness/spec/agreement.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr std::size_t kEqualShown = 4;
constexpr std::size_t kEntriesShown = 3;

std::string WithoutModule(const std::string& signal) { return signal.substr(0, signal.find('{')); }

bool IsExact(const std::string& signal, const TargetDescription& target) {
  const SignalInfo* info = target.FindSignal(WithoutModule(signal));
  return info != nullptr && info->exact;
}

// What only one of two runs evaluates is no difference of what both compute.
bool AreOfTheSameSteps(const Series& a, const Series& b, int steps) {
  for (int step = 0; step < steps; ++step) {
    if (a.Has(step) != b.Has(step)) return false;
  }
  return true;
}

// The first step at which the run does not agree with control as a check of twins would have it;
// -1: none.
int FirstStepApart(const std::string& signal, const formula::Runs& runs, bool has_draws,
                   const TargetDescription& target) {
  const auto parsed =
      formula::Formula::Parse(AgreementOn(signal, has_draws ? "rounding" : "bitwise", target));
  if (!parsed.formula) return -1;
  const formula::Reading reading = parsed.formula->Evaluate(runs, target);
  return reading.truth == formula::Truth::kFalse ? reading.step : -1;
}

struct Apart {
  int step = 0;
  StepStage stage = StepStage::kOther;
  std::string signal;
  bool is_exact = false;
  bool operator<(const Apart& other) const {
    return std::tie(step, stage, signal) < std::tie(other.step, other.stage, other.signal);
  }
};

bool BeginsWithOneOf(std::string_view text, const std::vector<std::string_view>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

void AddOnce(const std::string& text, std::vector<std::string>& list) {
  if (std::count(list.begin(), list.end(), text) == 0) list.push_back(text);
}

// What the keys that a twin changes are about, or its phases.
std::vector<std::string> TopicsOf(const Twin& twin) {
  static const std::pair<std::string_view, const char*> kTopics[] = {
      {"accumulation", "accumulation"},
      {"parallel", "communication"},
      {"scaler", "loss scaling"},
      {"precision", "precision"},
      {"eval", "evaluation"},
      {"checkpoint", "checkpoint"},
      {"schedule", "schedule"},
      {"optimizer.clip", "clipping"},
      {"optimizer", "optimizer"},
      {"model", "model"},
      {"loss", "loss"},
      {"sampler", "sampler"},
      {"loader", "data"},
      {"data", "data"}};
  std::vector<std::string> topics;
  if (twin.phases.size() > 1) topics.push_back("checkpoint");
  const auto add = [&](const std::string& key) {
    for (const auto& [beginning, topic] : kTopics) {
      if (key.starts_with(beginning)) return AddOnce(topic, topics);
    }
  };
  for (const auto& [key, value] : twin.changes.set) add(key);
  for (const auto& [key, factor] : twin.changes.scale) add(key);
  // Fewer samples a step are how a twin keeps its global batch, not what it is about.
  if (topics.size() > 1) std::erase(topics, "data");
  return topics;
}

std::vector<std::string> PartsOf(StepStage stage) {
  switch (stage) {
    case StepStage::kData:
      return {"sampler", "data"};
    case StepStage::kForward:
      return {"loss", "model", "data"};
    case StepStage::kBackward:
      return {"gradients", "model"};
    case StepStage::kScaling:
      return {"loss scaling", "precision"};
    case StepStage::kClipping:
      return {"clipping"};
    case StepStage::kSchedule:
      return {"schedule"};
    case StepStage::kUpdate:
      return {"optimizer"};
    case StepStage::kEvaluation:
      return {"evaluation"};
    case StepStage::kOther:
      break;
  }
  return {};
}

// The names of what is recorded at the step and not apart, of stages before the place's; the
// nearest stage first.
std::vector<std::string> StillEqual(const Place& place, const std::vector<Apart>& apart,
                                    const std::set<std::string>& by_form, const RunTrace& control) {
  std::set<std::string> differ = by_form;
  for (const Apart& one : apart) {
    if (one.step <= place.step) differ.insert(WithoutModule(one.signal));
  }
  std::vector<std::string> equal;
  for (const auto& [key, series] : control.series) {
    const auto& [name, rank] = key;
    if (rank != 0 || IsTimeOrMemory(name)) continue;
    const std::string plain = WithoutModule(name);
    const bool is_before = StageOf(plain) < place.stage && !differ.contains(plain);
    if (is_before && series.Has(place.step)) AddOnce(plain, equal);
  }
  std::stable_sort(equal.begin(), equal.end(), [](const std::string& a, const std::string& b) {
    return StageOf(a) > StageOf(b);
  });
  if (equal.size() > kEqualShown) equal.resize(kEqualShown);
  return equal;
}

}  // namespace

const char* ToString(StepStage stage) {
  switch (stage) {
    case StepStage::kData:
      return "data";
    case StepStage::kForward:
      return "forward pass";
    case StepStage::kBackward:
      return "backward pass";
    case StepStage::kScaling:
      return "loss scaling";
    case StepStage::kClipping:
      return "clipping";
    case StepStage::kSchedule:
      return "schedule";
    case StepStage::kUpdate:
      return "update";
    case StepStage::kEvaluation:
      return "evaluation";
    case StepStage::kOther:
      return "no known stage";
  }
  return "";
}

StepStage StageOf(const std::string& signal) {
  static const std::pair<StepStage, std::vector<std::string_view>> kStages[] = {
      {StepStage::kEvaluation, {"eval", "val", "free_running"}},
      {StepStage::kScaling, {"loss_scale", "overflow", "skipped_updates"}},
      {StepStage::kData, {"sample", "epoch", "token", "loss_tokens", "skipped"}},
      {StepStage::kForward, {"loss", "act_", "train_loss", "ppl"}},
      {StepStage::kClipping, {"applied_grad", "clip"}},
      {StepStage::kBackward, {"grad", "nonfinite_grads"}},
      {StepStage::kSchedule, {"lr", "learning_rate"}},
      {StepStage::kUpdate, {"update", "param", "weight", "untrained", "frozen"}}};
  for (const auto& [stage, beginnings] : kStages) {
    if (BeginsWithOneOf(signal, beginnings)) return stage;
  }
  return StepStage::kOther;
}

std::optional<Place> FirstApart(const RunTrace& twin, const RunTrace& control,
                                const std::vector<const RunTrace*>& draws,
                                const TargetDescription& target) {
  const int steps = std::min(twin.planned_steps, control.planned_steps);
  formula::Runs runs{.self = &twin, .arms = {{"control", &control}}};
  for (std::size_t i = 0; i < draws.size(); ++i) {
    runs.arms[formula::kRoundingArm + std::to_string(i + 1)] = draws[i];
  }
  std::vector<Apart> apart;
  for (const auto& [key, series] : control.series) {
    const auto& [name, rank] = key;
    const Series* other = twin.Find(name, 0);
    if (rank != 0 || IsTimeOrMemory(name) || other == nullptr) continue;
    if (!AreOfTheSameSteps(series, *other, steps)) continue;
    const int step = FirstStepApart(name, runs, !draws.empty(), target);
    if (step >= 0) apart.push_back({step, StageOf(name), name, IsExact(name, target)});
  }
  const bool computed_differs_at_once = std::any_of(
      apart.begin(), apart.end(), [](const Apart& one) { return one.step == 0 && !one.is_exact; });
  std::set<std::string> by_form;
  std::erase_if(apart, [&](const Apart& one) {
    const bool is_by_form = !computed_differs_at_once && one.step == 0 && one.is_exact;
    if (is_by_form) by_form.insert(WithoutModule(one.signal));
    return is_by_form;
  });
  if (apart.empty()) return std::nullopt;
  const Apart& first = *std::min_element(apart.begin(), apart.end());
  Place place{first.step, first.signal, first.stage, {}};
  place.equal = StillEqual(place, apart, by_form, control);
  return place;
}

std::optional<StateApart> FirstStateApart(const RunTrace& run, const RunTrace& other) {
  const auto digests_of = [](const RunTrace& trace) {
    std::map<int, const Json*> by_steps;
    for (const Event& event : trace.events) {
      if (event.name != "checkpoint_saved" || event.rank != 0) continue;
      const auto steps = event.fields.find("steps_done");
      const auto digests = event.fields.find("entry_digests");
      if (steps == event.fields.end() || !steps->is_number_integer()) continue;
      if (digests == event.fields.end() || !digests->is_object()) continue;
      by_steps[steps->get<int>()] = &*digests;
    }
    return by_steps;
  };
  const auto others = digests_of(other);
  for (const auto& [steps_done, digests] : digests_of(run)) {
    const auto found = others.find(steps_done);
    if (found == others.end()) continue;
    StateApart apart{.steps_done = steps_done};
    for (const auto& [name, digest] : digests->items()) {
      if (found->second->value(name, Json()) != digest) apart.entries.push_back(name);
    }
    for (const auto& [name, digest] : found->second->items()) {
      if (!digests->contains(name)) apart.entries.push_back(name);
    }
    if (!apart.entries.empty()) return apart;
  }
  return std::nullopt;
}

std::string ToString(const StateApart& apart) {
  std::vector<std::string> shown = apart.entries;
  const std::size_t more = shown.size() > kEntriesShown ? shown.size() - kEntriesShown : 0;
  shown.resize(shown.size() - more);
  std::string text = "first checkpoint apart, after " + std::to_string(apart.steps_done) +
                     " steps: " + Join(shown);
  if (more > 0) text += " and " + std::to_string(more) + " more";
  return text;
}

std::string ToString(const Place& place) {
  std::string text = "apart first at step " + std::to_string(place.step) + ": " + place.signal +
                     " (" + ToString(place.stage) + ")";
  if (!place.equal.empty()) text += "; equal until there: " + Join(place.equal);
  return text;
}

std::vector<std::string> SuspectsOf(const Place& place, const Twin& twin) {
  std::vector<std::string> suspects = TopicsOf(twin);
  for (const std::string& part : PartsOf(place.stage)) AddOnce(part, suspects);
  return suspects;
}

}  // namespace trainwreck
