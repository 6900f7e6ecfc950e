// Statistics of tensors as signals: "act_mean{blocks.*}", "grad_max{head.weight}",
// "param_nonfinite". A family is the kind of tensor: act (outputs of modules, by module), grad,
// param, update (by parameter). Only signals that a plan's `record` names are computed.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/description.h"
#include "kernels/tensor_stats.h"

namespace trainwreck {

// The statistics of one tensor in one step, over all of its micro-batches.
struct TensorReading {
  kernels::TensorStats stats;
  std::int64_t saturated = 0;  // elements with |x| >= 0.99; counted where asked for
  double unit_spread = 0;      // see UnitSpread; read where asked for
  double softmax_entropy = 0;  // see SoftmaxEntropy, over `rows`; read where asked for
  std::int64_t rows = 0;
};

struct Statistic {
  const char* name;  // "mean"
  const char* unit;
  bool exact;
  Scale scale;
  const char* doc;  // "Mean of", to be followed by what
  double (*value)(const TensorReading& reading);
};

// All statistics, in the order of --describe; activations have three more.
const std::vector<Statistic>& Statistics();
const Statistic& SaturatedShare();
const Statistic& UnitSpread();
const Statistic& SoftmaxEntropy();

// The signals of a family ("grad", "the gradient before clipping") for --describe. `with_norm`
// false leaves out `norm`, which is always recorded.
std::vector<SignalInfo> FamilySignals(const std::string& family, const std::string& of_what,
                                      bool with_norm);

// The names in a plan's `record`.
class AskedSignals {
 public:
  explicit AskedSignals(const std::vector<std::string>& record);
  // Whether it has "grad_mean{GLOB}" with a glob that matches `name`.
  bool Asks(const std::string& signal, const std::string& name) const;
  // Whether it has "grad_mean" without a glob.
  bool AsksTotal(const std::string& signal) const;
  // Whether it has "grad_mean{...}" with any glob.
  bool AsksSome(const std::string& signal) const;
  bool AsksAny(const std::string& signal) const { return AsksTotal(signal) || AsksSome(signal); }

 private:
  std::vector<std::pair<std::string, std::string>> globs_;  // signal, glob
  std::vector<std::string> totals_;
};

// One family's signals of the step in progress.
class FamilyRecorder {
 public:
  FamilyRecorder(std::string family, const AskedSignals& asked);

  bool active() const { return active_; }  // false: nothing is asked, and nothing needs to be read
  bool Wants(const std::string& name) { return !total_.empty() || !EntryOf(name).asked.empty(); }
  // Whether this statistic of this tensor is asked for.
  bool Wants(const std::string& name, const Statistic& statistic) const;

  // Adds a reading of `name` to those of the step.
  void Add(const std::string& name, const TensorReading& reading);
  // Passes each value that is asked for to `add`, as ("grad_mean{head.weight}", 0.1), and begins a
  // new step.
  template <typename AddValue>
  void Flush(const AddValue& add) {
    for (auto& [name, entry] : entries_) {
      if (!entry.seen) continue;
      for (const auto& [key, statistic] : entry.asked) add(key, statistic->value(entry.reading));
      entry.reading = {};
      entry.seen = false;
    }
    if (!total_seen_) return;
    for (const auto& [key, statistic] : total_) add(key, statistic->value(total_reading_));
    total_reading_ = {};
    total_seen_ = false;
  }

 private:
  using Keys = std::vector<std::pair<std::string, const Statistic*>>;
  struct Entry {
    Keys asked;
    TensorReading reading;
    bool seen = false;
  };
  Entry& EntryOf(const std::string& name);

  std::string family_;
  const AskedSignals& asked_;
  bool active_;
  std::map<std::string, Entry> entries_;
  Keys total_;  // over all tensors of the family
  TensorReading total_reading_;
  bool total_seen_ = false;
};

}  // namespace trainwreck
