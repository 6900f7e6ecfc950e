// How the history grows: time of its operations over the number of case records that it holds.
//
//   bazel run -c opt //harness/history:history_benchmark
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>

#include "harness/history/history.h"
#include "harness/history/history_testing.h"

namespace trainwreck {
namespace {

constexpr int kCasesOfRun = 100;

std::string Hex(std::int64_t number) {
  std::string digits;
  for (int i = 0; i < 16; ++i) {
    digits += "0123456789abcdef"[(number * 0x9E3779B97F4A7C15ULL >> (4 * i)) & 15];
  }
  return digits;
}

Record RunOf(std::int64_t number) {
  Record record = TestRecord(Hex(number), "d00d");
  char time[32];
  std::snprintf(time, sizeof time, "2026-01-01T%010lldZ", static_cast<long long>(number));
  record.started_utc = time;
  record.cases.clear();
  for (int i = 0; i < kCasesOfRun; ++i) {
    record.cases.push_back(TestCase("family/case-" + std::to_string(i)));
    record.cases.back().wall_seconds = 1 + i;
  }
  return record;
}

// One file for each size, made once.
class Stored {
 public:
  static Stored& Of(std::int64_t cases) {
    static std::map<std::int64_t, std::unique_ptr<Stored>> all;
    auto& stored = all[cases];
    if (!stored) stored = std::make_unique<Stored>(cases);
    return *stored;
  }

  explicit Stored(std::int64_t cases) : runs(cases / kCasesOfRun) {
    char folder[] = "/tmp/history-benchmark-XXXXXX";
    if (mkdtemp(folder) == nullptr) std::abort();
    folder_ = folder;
    history = std::make_unique<RunHistory>(folder_ + "/h.db", RunHistory::Mode::kWrite);
    for (std::int64_t run = 0; run < runs; ++run) history->Add(RunOf(run));
  }
  ~Stored() { std::filesystem::remove_all(folder_); }

  std::string NewPath() { return folder_ + "/other" + std::to_string(others_++) + ".db"; }

  std::int64_t runs;
  std::unique_ptr<RunHistory> history;

 private:
  std::string folder_;
  int others_ = 0;
};

void AddARun(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  std::int64_t number = stored.runs;
  for (auto _ : state) stored.history->Add(RunOf(number++));
}

void LoadARun(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(stored.history->Load(stored.runs / 2));
}

void ListNewestRuns(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(stored.history->List(20));
}

void ListACase(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(stored.history->ListCases("family/case-50", 20));
  }
}

// All hundred cases match.
void ListByAGlob(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(stored.history->ListCases("family/*", 20));
}

void PageOfRuns(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(stored.history->List(20, stored.runs / 2));
}

void PageOfACase(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  const CasePlace middle{stored.runs / 2, "family/case-50"};
  for (auto _ : state) {
    benchmark::DoNotOptimize(stored.history->ListCases("family/case-50", 20, middle));
  }
}

// What each of the hundred cases took.
void Costs(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  const std::string target = RunOf(0).target;
  for (auto _ : state) benchmark::DoNotOptimize(stored.history->Seconds(target));
}

// Of ten runs, one of them is new.
void MergeTenRuns(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  static std::int64_t number = 1'000'000'000;
  for (auto _ : state) {
    state.PauseTiming();
    auto other = std::make_unique<RunHistory>(stored.NewPath(), RunHistory::Mode::kWrite);
    for (int run = 0; run < 9; ++run) other->Add(RunOf(run));
    other->Add(RunOf(number++));
    state.ResumeTiming();
    benchmark::DoNotOptimize(stored.history->MergeFrom(*other));
  }
}

void FindACommit(benchmark::State& state) {
  Stored& stored = Stored::Of(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(stored.history->OfCommit(Hex(stored.runs / 2).substr(0, 10)));
  }
}

#define SIZES ->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond)
BENCHMARK(LoadARun) SIZES;
BENCHMARK(ListNewestRuns) SIZES;
BENCHMARK(ListACase) SIZES;
BENCHMARK(ListByAGlob) SIZES;
BENCHMARK(PageOfRuns) SIZES;
BENCHMARK(PageOfACase) SIZES;
BENCHMARK(Costs) SIZES;
BENCHMARK(FindACommit) SIZES;
BENCHMARK(AddARun) SIZES->Iterations(50);
BENCHMARK(MergeTenRuns) SIZES->Iterations(20);

}  // namespace
}  // namespace trainwreck
