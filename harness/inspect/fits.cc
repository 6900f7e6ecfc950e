#include "harness/inspect/fits.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <span>

#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

constexpr double kSurprise = 0.0002;  // as a share of the peak
constexpr int kRefinements = 4;
constexpr int kSteps = 3;    // the second has all of the optimizer's state, the last evaluates
constexpr int kRounds = 12;  // of a search, which needs one or two
constexpr int kMostSize = 1 << 24;
constexpr char kPeakSignal[] = "memory_peak_bytes";
constexpr char kMoments[] = "memory_moments";

using Points = std::span<const PeakAt>;  // by size, rising
using ThreePoints = std::span<const PeakAt, 3>;

// Of the parabola through these three, in Newton's form. More data does not need less memory: where
// a peak falls, the smaller size did something that the larger one did not, as looking for the
// origin of a NaN. Then two that did the same give the slope of a line through the last one.
template <typename Value>
double Continued(ThreePoints points, const Value& value, double x) {
  const double x0 = points[0].size, x1 = points[1].size, x2 = points[2].size;
  const double y0 = value(points[0]), y1 = value(points[1]), y2 = value(points[2]);
  const double first = (y1 - y0) / (x1 - x0), second = (y2 - y1) / (x2 - x1);
  if (second < 0) {
    const double slope = y0 <= y2 ? (y2 - y0) / (x2 - x0) : std::max(0.0, first);
    return y2 + slope * (x - x2);
  }
  if (first < 0) return y2 + second * (x - x2);
  return y0 + first * (x - x0) + (second - first) / (x2 - x0) * (x - x0) * (x - x1);
}

double HighestOf(const std::vector<double>& moments) {
  return moments.empty() ? 0 : *std::max_element(moments.begin(), moments.end());
}

ThreePoints ThreeOf(Points points, std::size_t at) { return points.subspan(at).first<3>(); }
ThreePoints LastThree(Points points) { return points.last<3>(); }

const std::vector<double>& MomentsIn(const PeakAt& point, const std::string& stage) {
  return point.moments.at(stage);
}

bool AllHave(Points points, const std::string& stage) {
  return std::all_of(points.begin(), points.end(),
                     [&](const PeakAt& point) { return point.moments.contains(stage); });
}

double ContinuedMoment(ThreePoints points, const std::string& stage, std::size_t i, double x) {
  return Continued(
      points, [&](const PeakAt& point) { return MomentsIn(point, stage)[i]; }, x);
}

double ContinuedHighest(ThreePoints points, const std::string& stage, double x) {
  return Continued(
      points, [&](const PeakAt& point) { return HighestOf(MomentsIn(point, stage)); }, x);
}

// Whether the last point's moments of a stage are, one by one, what the three points before it let
// expect. They are not where a kernel takes scratch space from some size on, or a thread gives
// memory back now earlier, now later: then equally many moments need not be the same ones.
bool MomentsHold(Points points, const std::string& stage) {
  if (points.size() < 4 || !AllHave(points.last(4), stage)) return false;
  const Points four = points.last(4);
  const PeakAt& last = four.back();
  const std::vector<double>& moments = MomentsIn(last, stage);
  for (const PeakAt& point : four) {
    if (MomentsIn(point, stage).size() != moments.size()) return false;
  }
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const double expected = ContinuedMoment(ThreeOf(four, 0), stage, i, last.size);
    if (std::abs(expected - moments[i]) > kSurprise * last.peak) return false;
  }
  return true;
}

// The highest of a stage that the last three have: of its moments where these hold, else of the
// highest ones.
double ContinuedStage(Points points, const std::string& stage, double x) {
  if (!MomentsHold(points, stage)) return ContinuedHighest(LastThree(points), stage, x);
  double highest = 0;
  for (std::size_t i = 0; i < MomentsIn(points.back(), stage).size(); ++i) {
    highest = std::max(highest, ContinuedMoment(LastThree(points), stage, i, x));
  }
  return highest;
}

// From three points at least: the highest stage that the last three have; where stages are not
// known, the peak.
double Predicted(Points points, double x) {
  double highest = 0;
  for (const auto& [stage, moments] : points.back().moments) {
    if (!AllHave(points.last(3), stage)) continue;
    highest = std::max(highest, ContinuedStage(points, stage, x));
  }
  if (highest > 0) return highest;
  return Continued(
      LastThree(points), [](const PeakAt& point) { return point.peak; }, x);
}

// Whether the last point has a stage that the three before it did not let expect.
bool HasSurprise(const std::vector<PeakAt>& all) {
  if (all.size() < 4) return false;
  const Points points(all);
  const PeakAt& last = points.back();
  const ThreePoints before = ThreeOf(points, points.size() - 4);
  const auto is_other = [&](double expected, double measured) {
    return std::abs(expected - measured) > kSurprise * last.peak;
  };
  bool has_stage = false;
  for (const auto& [stage, moments] : last.moments) {
    if (!AllHave(before, stage)) continue;
    has_stage = true;
    if (MomentsHold(points, stage)) continue;
    if (is_other(ContinuedHighest(before, stage, last.size), HighestOf(moments))) return true;
  }
  return !has_stage && is_other(Predicted(before, last.size), last.peak);
}

void Insert(std::vector<PeakAt>& points, const std::vector<PeakAt>& more) {
  for (const PeakAt& point : more) {
    const auto at = std::lower_bound(points.begin(), points.end(), point.size,
                                     [](const PeakAt& one, int size) { return one.size < size; });
    if (at == points.end() || at->size != point.size) points.insert(at, point);
  }
}

const PeakAt* Find(const std::vector<PeakAt>& points, int size) {
  for (const PeakAt& point : points) {
    if (point.size == size) return &point;
  }
  return nullptr;
}

// Measures what `points` lack of these sizes. False: interrupted.
bool MeasureMissing(std::vector<int> sizes, const MeasurePeaks& measure,
                    std::vector<PeakAt>& points) {
  std::erase_if(sizes, [&](int size) { return size < 1 || Find(points, size) != nullptr; });
  if (sizes.empty()) return true;
  const MeasuredPeaks more = measure(sizes);
  if (!more) return false;
  Insert(points, *more);
  return true;
}

// Measures the largest size that should fit and the next, until both are as they should be.
bool FindLargest(double budget, const MeasurePeaks& measure, std::vector<PeakAt>& points,
                 FitsReport& report) {
  for (int round = 0; round < kRounds; ++round) {
    const int largest = PeakCurve(points).Largest(budget);
    if (!MeasureMissing({largest, largest + 1}, measure, points)) return false;
    const PeakAt* fits = Find(points, largest);
    const PeakAt* exceeds = Find(points, largest + 1);
    if ((fits != nullptr && fits->peak > budget) || exceeds->peak <= budget) continue;
    report.largest = largest;
    if (fits != nullptr) report.fits = *fits;
    report.exceeds = *exceeds;
    return true;
  }
  return true;  // the peak jumps about: there is no answer
}

// Keeps the lower of two measurements of the same sizes: threads may give back memory late, and so
// in a stage that does not need it.
void KeepLower(const std::vector<PeakAt>& again, std::vector<PeakAt>& points) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    PeakAt& point = points[i];
    const PeakAt& other = again[i];
    for (auto& [stage, moments] : point.moments) {
      const auto again = other.moments.find(stage);
      if (again == other.moments.end()) continue;
      if (HighestOf(again->second) < HighestOf(moments)) moments = again->second;
    }
    if (other.peak < point.peak) point.peak = other.peak, point.parts = other.parts;
  }
}

MeasurePeaks LowestOfThree(const MeasurePeaks& measure) {
  return [&measure](const std::vector<int>& sizes) -> MeasuredPeaks {
    MeasuredPeaks points = measure(sizes);
    for (int more = 0; more < 2 && points; ++more) {
      const MeasuredPeaks again = measure(sizes);
      if (!again) return std::nullopt;
      KeepLower(*again, *points);
    }
    return points;
  };
}

// Where a stage bends below the largest size, as where another moment of the backward pass becomes
// its highest, points nearer to that size say how it goes on. False: interrupted.
bool Refine(const MeasurePeaks& measure, std::vector<PeakAt>& points) {
  for (int round = 0; round < kRefinements && HasSurprise(points); ++round) {
    const int last = points.back().size, before = points[points.size() - 2].size;
    if (!MeasureMissing({before + (last - before) / 2}, LowestOfThree(measure), points))
      return false;
  }
  return true;
}

// Looks closer where the largest size is not as the smaller ones let expect. False: interrupted.
bool LookCloser(const MeasurePeaks& measure, std::vector<PeakAt>& points) {
  if (!HasSurprise(points)) return true;
  std::vector<int> sizes;
  for (const PeakAt& point : points) sizes.push_back(point.size);
  const MeasuredPeaks again = LowestOfThree(measure)(sizes);
  if (!again) return false;
  KeepLower(*again, points);
  return Refine(measure, points);
}

// The runs at one size after the other.
class Scales {
 public:
  Scales(const Patient& patient, const std::string& key, const TargetDescription& target)
      : given_(patient.runs.front()), key_(key), target_(target) {}

  Run At(int size) const {
    Run run = given_;
    SetArm(run, NameOf(size));
    run.plan.recipe[key_] = size;
    run.plan.recipe[kStepsKey] = run.steps = kSteps;
    if (target_.FindEvent(kMoments) != nullptr) run.plan.record.emplace_back(kMoments);
    run.later_changes = {};
    SetPhases(run, {});
    LeaveEnoughSamples(run.plan.recipe);
    return run;
  }
  static std::string NameOf(int size) { return "size" + std::to_string(size); }

 private:
  // An epoch of fewer samples than a batch would make the batch smaller.
  void LeaveEnoughSamples(Recipe& recipe) const {
    const ParamInfo* samples = KeyWithRole(target_, KeyRole::kSamples);
    const RecipeView view(recipe, &target_);
    if (samples == nullptr) return;
    const int in_step = view.Int(KeyRole::kBatchSize).value_or(1) *
                        view.Int(KeyRole::kAccumulation).value_or(1) *
                        view.Int(kRanksKey).value_or(1);
    if (view.Int(samples->name).value_or(0) < in_step) recipe[samples->name] = in_step;
  }

  const Run& given_;
  const std::string& key_;
  const TargetDescription& target_;
};

std::map<std::string, std::vector<double>> MomentsOf(const RunTrace& trace) {
  std::map<std::string, std::vector<double>> moments;
  for (const Event& event : trace.events) {
    if (event.name != kMoments || event.rank != 0) continue;
    const auto stages = event.fields.find("stages");
    if (stages == event.fields.end() || !stages->is_array()) continue;
    for (const Json& stage : *stages) {
      if (!stage.is_object() || !stage.contains("stage") || !stage["stage"].is_string()) continue;
      std::vector<double>& bytes = moments[stage["stage"].get<std::string>()];
      for (const Json& moment : stage.value("bytes", Json::array())) {
        bytes.push_back(DecodeNumber(moment).value_or(0));
      }
    }
  }
  return moments;
}

PeakAt PointOf(int size, const std::string& key, const RunResult& result) {
  const MemoryReport memory = MemoryOf(result.trace, 0);
  if (result.end != RunEnd::kCompleted || memory.signal != kPeakSignal) {
    throw ConfigurationError("cannot measure with " + key + " = " + std::to_string(size) + ": " +
                             ToString(result.end) +
                             (result.detail.empty() ? "" : ", " + result.detail));
  }
  return {size, memory.peak, memory.parts, MomentsOf(result.trace)};
}

std::string KeyToVary(const FitsOptions& options, const TargetDescription& target) {
  const ParamInfo* key = options.key.empty() ? KeyWithRole(target, KeyRole::kBatchSize)
                                             : ResolveKey(target, options.key);
  if (key == nullptr) {
    throw UsageError(options.key.empty() ? "no recipe key of target '" + target.name +
                                               "' has the role 'batch_size'; name a key with --vary"
                                         : "--vary: target '" + target.name +
                                               "' has no recipe key '" + options.key + "'");
  }
  if (key->type != ValueType::kInt) throw UsageError("--vary: '" + key->name + "' is no integer");
  if (target.FindSignal(kPeakSignal) == nullptr) {
    throw UsageError("target '" + target.name + "' does not record " + kPeakSignal);
  }
  return key->name;
}

Json PointJson(const std::optional<PeakAt>& point) {
  if (!point) return nullptr;
  Json parts = Json::object();
  for (const MemoryPart& part : point->parts) parts[part.owner] = part.at_peak;
  Json by_stage = Json::object();
  for (const auto& [stage, moments] : point->moments) by_stage[stage] = HighestOf(moments);
  return {
      {"size", point->size}, {"peak_bytes", point->peak}, {"parts", parts}, {"by_stage", by_stage}};
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace

PeakCurve::PeakCurve(std::vector<PeakAt> points) : points_(std::move(points)) {}

double PeakCurve::At(int size) const {
  const auto above = std::find_if(points_.begin(), points_.end(),
                                  [&](const PeakAt& point) { return point.size >= size; });
  if (above == points_.end()) return Predicted(points_, size);
  if (above->size == size) return above->peak;
  if (above == points_.begin()) return Predicted(Points(points_).first(3), size);
  const PeakAt& below = *(above - 1);
  return below.peak + (above->peak - below.peak) * (size - below.size) / (above->size - below.size);
}

int PeakCurve::Largest(double budget) const {
  int fits = 0, exceeds = 1;
  while (exceeds <= kMostSize && At(exceeds) <= budget) {
    fits = exceeds;
    exceeds *= 2;
  }
  while (exceeds - fits > 1) {
    const int middle = fits + (exceeds - fits) / 2;
    (At(middle) <= budget ? fits : exceeds) = middle;
  }
  return fits;
}

std::optional<double> PeakCurve::Miss() const {
  if (points_.size() < 4) return std::nullopt;
  const double predicted =
      Predicted(Points(points_).first(points_.size() - 1), points_.back().size);
  return std::abs(predicted - points_.back().peak) / points_.back().peak;
}

std::vector<int> SizesToMeasure(int own) {
  const int first = std::max(1, own / 16);
  return {first, 2 * first, 4 * first, 8 * first};
}

std::optional<FitsReport> FindWhatFits(int own, const FitsOptions& options,
                                       const MeasurePeaks& measure) {
  FitsReport report;
  report.own = own;
  std::vector<PeakAt> points;
  if (!MeasureMissing(SizesToMeasure(own), measure, points)) return std::nullopt;
  if (!LookCloser(measure, points)) return std::nullopt;
  report.points = points;
  const PeakCurve curve(points);
  report.miss = curve.Miss();
  report.predicted = curve.At(own);
  report.is_measured = Find(points, own) != nullptr;
  if (options.verify) {
    if (!MeasureMissing({own}, measure, points)) return std::nullopt;
    report.verified = Find(points, own)->peak;
  }
  if (options.budget && !FindLargest(*options.budget, measure, points, report)) {
    return std::nullopt;
  }
  return report;
}

std::optional<FitsReport> MeasureFits(const Patient& patient, const FitsOptions& options,
                                      const Session& session, int cores) {
  const std::string key = KeyToVary(options, session.description);
  const Scales scales(patient, key, session.description);
  const auto measure = [&](const std::vector<int>& sizes) -> MeasuredPeaks {
    Batch batch;
    for (const int size : sizes) batch.push_back(scales.At(size));
    std::vector<PeakAt> points;
    const bool is_done = RunAside({batch}, session, cores, [&](std::size_t, BatchResults& results) {
      for (const int size : sizes) {
        points.push_back(PointOf(size, key, results.at(Scales::NameOf(size)).begin()->second));
      }
    });
    if (!is_done) return std::nullopt;
    return points;
  };
  const RecipeView recipe(patient.runs.front().plan.recipe, &session.description);
  auto report = FindWhatFits(std::max(1, recipe.Int(key).value_or(1)), options, measure);
  if (!report) return std::nullopt;
  report->recipe = patient.name;
  report->key = key;
  return report;
}

double ParseBytes(const std::string& text) {
  static const std::map<std::string, double> kUnits = {
      {"", 1},     {"B", 1},      {"kB", 1e3},          {"MB", 1e6},
      {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024.0 * 1024 * 1024}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const auto unit = kUnits.find(end);
  if (end == text.c_str() || unit == kUnits.end() || !(number > 0) || !std::isfinite(number)) {
    throw UsageError("'" + text + "' is no amount of memory: say 24000000, 24MB or 1.5GiB");
  }
  return number * unit->second;
}

Json ToJson(const FitsReport& report) {
  Json points = Json::array();
  for (const PeakAt& point : report.points) points.push_back(PointJson(point));
  return {{"schema", "trainwreck/fits"},
          {"version", 1},
          {"recipe", report.recipe},
          {"key", report.key},
          {"own", report.own},
          {"points", points},
          {"miss", OrNull(report.miss)},
          {"predicted_bytes", report.predicted},
          {"own_is_measured", report.is_measured},
          {"verified_bytes", OrNull(report.verified)},
          {"largest", OrNull(report.largest)},
          {"fits", PointJson(report.fits)},
          {"exceeds", PointJson(report.exceeds)}};
}

}  // namespace trainwreck
