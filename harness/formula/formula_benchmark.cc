// Samples read per second, at 10^4 and 10^5 steps: growth must be linear, whatever the window's
// width.
//   bazel run -c opt //harness/formula:formula_benchmark
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "harness/formula/formula.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace {

RunTrace MakeRun(int steps) {
  testing::TestRun run(steps);
  std::mt19937 random(1);
  std::lognormal_distribution<double> noise(0, 0.1);
  std::vector<double> loss, grad_norm, times;
  for (int step = 0; step < steps; ++step) {
    loss.push_back((1 + 3 * std::exp(-5.0 * step / steps)) * noise(random));
    grad_norm.push_back(noise(random));
    times.push_back(0.01 * step);
  }
  run.With("loss", loss).With("grad_norm", grad_norm).Times(times);
  return run.trace();
}

void Evaluate(benchmark::State& state, const std::string& text) {
  const int steps = static_cast<int>(state.range(0));
  const RunTrace trace = MakeRun(steps);
  const Formula::ParseResult parsed = Formula::Parse(text);
  Runs runs;
  runs.self = &trace;
  runs.arms["control"] = &trace;
  for (auto _ : state) {
    benchmark::DoNotOptimize(parsed.formula->Evaluate(runs, testing::TestTarget()));
  }
  state.SetItemsProcessed(state.iterations() * steps);
  state.SetComplexityN(steps);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(10'000)->Arg(30'000)->Arg(100'000)->Complexity(benchmark::oN);
  benchmark->Unit(benchmark::kMicrosecond);
}

#define FORMULA_BENCHMARK(name, text) BENCHMARK_CAPTURE(Evaluate, name, text)->Apply(Sizes)

FORMULA_BENCHMARK(compare_means, "mean(loss[:]) <= 1.25 * control.mean(loss[:])");
FORMULA_BENCHMARK(always, "always loss < 1e9");
FORMULA_BENCHMARK(spike_precedes,
                  "spike(grad_norm, ratio=4, window=8) precedes[1:20] nonfinite(loss)");
FORMULA_BENCHMARK(nested_window_10, "always eventually[:10] loss < 9");
FORMULA_BENCHMARK(nested_window_5000, "always eventually[:5000] loss < 9");
FORMULA_BENCHMARK(until_window_5000, "always (loss < 9 until[10:5000] grad_norm > 1)");
FORMULA_BENCHMARK(plateau_window_1000, "eventually plateau(loss, window=1000, tolerance=1e-9)");
FORMULA_BENCHMARK(seconds, "always eventually[:5s] loss < 9");

void ParseAndCheck(benchmark::State& state) {
  const std::string text =
      "spike(grad_norm, ratio=4, window=8) precedes[1:20] nonfinite(loss) and "
      "mean(loss[-20:]) <= 1.25 * control.mean(loss[-20:])";
  const Vocabulary vocabulary = testing::TestVocabulary(120);
  for (auto _ : state) {
    const Formula::ParseResult parsed = Formula::Parse(text);
    benchmark::DoNotOptimize(parsed.formula->Check(vocabulary));
  }
}
BENCHMARK(ParseAndCheck)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace trainwreck::formula
