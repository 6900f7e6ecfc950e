// Records of a trace that are read per second, as the judge and `check` read them.
//   bazel run -c opt //harness/protocol:trace_benchmark
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace {

constexpr int kRecords = 100'000;

// A file of `kRecords` records in a folder of its own.
class TraceFile {
 public:
  TraceFile() : folder_((std::filesystem::temp_directory_path() / "trace.XXXXXX").string()) {
    if (mkdtemp(folder_.data()) == nullptr) std::abort();
    file_.open(folder_ + "/rank0.jsonl");
  }
  ~TraceFile() { std::filesystem::remove_all(folder_); }
  std::ofstream& file() { return file_; }

  void Read(benchmark::State& state) {
    file_.close();
    std::int64_t bytes = 0;
    for (auto _ : state) {
      TraceReader reader(folder_, 1, kRecords);
      reader.Poll(/*last=*/true);
      if (!reader.problems().empty()) state.SkipWithError(reader.problems().front().c_str());
      bytes += reader.bytes();
      benchmark::DoNotOptimize(reader.trace());
    }
    state.SetItemsProcessed(state.iterations() * kRecords);
    state.SetBytesProcessed(bytes);
  }

 private:
  std::string folder_;
  std::ofstream file_;
};

std::string Number(std::mt19937& random) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", std::lognormal_distribution<double>()(random));
  return text;
}

// Steps with `signals` signals and a time; `space` as Python's json writes it after ":" and ",".
void Steps(benchmark::State& state, const std::string& space, const std::string& last) {
  const int signals = static_cast<int>(state.range(0));
  TraceFile trace;
  std::mt19937 random(1);
  for (int step = 0; step < kRecords; ++step) {
    std::ofstream& file = trace.file();
    file << "{\"t\":" << space << "\"step\"," << space << "\"step\":" << space << step << ","
         << space << "\"time\":" << space << 0.01 * step;
    for (int i = 1; i < signals; ++i) {
      file << "," << space << "\"signal_" << i << "\":" << space << Number(random);
    }
    file << "," << space << "\"loss\":" << space << (last.empty() ? Number(random) : last) << "}\n";
  }
  trace.Read(state);
}

#define STEPS(name, space, last) BENCHMARK_CAPTURE(Steps, name, space, last)
STEPS(compact, "", "")->Arg(2)->Arg(4)->Arg(30)->Unit(benchmark::kMillisecond);
STEPS(of_python, " ", "")->Arg(4)->Unit(benchmark::kMillisecond);
STEPS(bare_nan, " ", "NaN")->Arg(4)->Unit(benchmark::kMillisecond);

void Collectives(benchmark::State& state) {
  TraceFile trace;
  for (int call = 0; call < kRecords; ++call) {
    trace.file() << R"({"t":"collective","step":)" << call / 4 << R"(,"call":)" << call
                 << R"(,"op":"all_reduce","shape":"[108224]","dtype":"float32"})"
                 << "\n";
  }
  trace.Read(state);
}
BENCHMARK(Collectives)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainwreck
