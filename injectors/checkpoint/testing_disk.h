// For tests of faults of the files of checkpoints: a folder of them.
#pragma once

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "injectors/testing.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {

inline StateDict StateAt(int step) {
  return {{"loop.step", at::full({}, step, at::kLong)}, {"model.weight", at::full({4096}, step)}};
}

struct Disk {
  ScratchFolder folder;
  FaultBench bench;
  std::string why;  // of the last checkpoint that is not whole

  std::unique_ptr<CheckpointStore> Store() {
    return std::make_unique<FileCheckpointStore>(CheckpointOptions{
        .dir = folder.path(), .on_damaged = [this](int, int, auto& said) { why = said; }});
  }
  // Saves after 10, 20 and 30 steps under a fault that acts at 20.
  std::vector<int> WholeAfter(const std::string& fault, std::map<std::string, Json> with) {
    bench.checkpoint_dir = folder.path();
    const auto injector = bench.Make(fault, std::move(with), {.at = 20});
    const auto store = static_cast<PartWrapper&>(*injector).Wrap(Store());
    for (const int step : {10, 20}) store->Save(step, StateAt(step));
    return store->List();
  }
};

}  // namespace trainwreck
