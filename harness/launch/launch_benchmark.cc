// What the harness costs per run: tiny runs of a target that does nothing but write 40 step
// records.
//
//   bazel run -c opt //harness/launch:launch_benchmark
//
// CPU is that of the launcher alone, without the spawn server and the ranks.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <memory>

#include "harness/launch/fake_runs.h"

namespace trainwreck {
namespace {

constexpr int kRuns = 400;

void BM_Throughput(benchmark::State& state) {
  const Isolation isolation = state.range(0) == 0 ? Isolation::kFork : Isolation::kExec;
  std::list<Run> runs;
  for (int i = 0; i < kRuns; ++i) {
    runs.push_back(FakeRun("run/" + std::to_string(i), "completes", {{"steps", 40}}));
  }
  std::int64_t done = 0;
  for (auto _ : state) {
    const std::string folder = FreshFolder("benchmark");
    const auto results = RunFakes(runs, isolation, [&](LauncherOptions& options) {
      options.cores = static_cast<int>(state.range(1));
      options.output_dir = folder;
    });
    for (const auto& [id, result] : results) done += result.end == RunEnd::kCompleted;
    state.PauseTiming();
    std::filesystem::remove_all(folder);
    state.ResumeTiming();
  }
  if (done != kRuns * static_cast<std::int64_t>(state.iterations())) {
    state.SkipWithError("not all runs completed");
  }
  state.counters["runs/min"] =
      benchmark::Counter(static_cast<double>(done) * 60, benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Throughput)
    ->ArgNames({"exec", "cores"})
    ->ArgsProduct({{0, 1}, {1, 2}})
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainwreck
