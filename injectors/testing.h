// The parts of a run that an injector's test needs: a clock to set, a sink that remembers events,
// and the injector as a plan makes it.
//
//   FaultBench bench;
//   auto freeze = bench.Make("model.freeze_parameters", {{"parameters", {"head.*"}}});
//   static_cast<PartWrapper&>(*freeze).Wrap(model);
//   EXPECT_EQ(bench.fired().at(0)["elements"], 4);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "injectors/injector.h"

namespace trainwreck {

class FaultBench : public EventSink {
 public:
  explicit FaultBench(int rank = 0, int world_size = 1, std::uint64_t seed = 7)
      : rank_(rank), world_size_(world_size), seed_(seed) {}

  std::unique_ptr<Injector> Make(const std::string& fault, std::map<std::string, Json> with = {},
                                 Trigger trigger = {});

  void Write(const std::string& name, Json fields) override;
  // The `fired` events so far; any other event fails the test.
  const std::vector<Json>& fired() const { return fired_; }

  Clock clock;
  Recipe recipe;  // what differs from the defaults
  std::string checkpoint_dir;

 private:
  int rank_;
  int world_size_;
  std::uint64_t seed_;
  std::vector<Json> fired_;
};

}  // namespace trainwreck
