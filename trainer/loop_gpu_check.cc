// A whole run on a GPU, beside the checks of what it runs on (devices/communicator_nccl_check.cc).
#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <utility>

#include "harness/protocol/plan.h"
#include "harness/protocol/trace_reader.h"
#include "trainer/build.h"
#include "trainer/devices/count_gpus.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

// What the vendor's own tool says of the first GPU: "0", "[N/A]"; empty: it says nothing.
std::string AskNvidiaSmi(const std::string& what) {
  const std::string command =
      "nvidia-smi --query-gpu=" + what + " --format=csv,noheader,nounits 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  char line[256] = "";
  const bool has_line = fgets(line, sizeof line, pipe) != nullptr;
  const bool succeeded = pclose(pipe) == 0;
  if (!has_line || !succeeded) return "";
  return std::string(line, std::strcspn(line, "\n"));
}

// What only a GPU can tell of a run: its events' clock, NVML's sensors, the rate
// against its own peak, the attention and the allocator that LibTorch takes. With NVTX ranges
// around all stages.
TEST(CudaRun, TellsWhatOnlyAGpuKnows) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const ScratchFolder folder;
  Plan plan;
  plan.run = "check";
  plan.seed = 1;
  plan.phase = "train";
  plan.recipe = {{"device", "cuda"},          {"steps", 8},
                 {"model.kind", "gpt"},       {"data.kind", "markov"},
                 {"precision", "bf16"},       {"precision.reduced_sums", true},
                 {"optimizer.kind", "adamw"}, {"memory.expandable_segments", true}};
  plan.checkpoint_dir = folder.File("checkpoints");
  plan.rendezvous = folder.File("rendezvous");
  plan.record = {"device_step_s", "mfu", "tokens_per_s"};
  const auto ends = RunForked(
      1, [&](int) { return std::to_string(Train(plan, 0, 1, folder.path())); }, /*limit_s=*/120);
  ASSERT_EQ(ends[0].output, "0") << "exit " << ends[0].exit_code;
  TraceReader reader(folder.path(), 1, 8);
  reader.Poll(/*last=*/true);
  const RunTrace& trace = reader.trace();
  for (const char* signal : {"device_step_s", "tokens_per_s", "mfu"}) {
    const Series* series = trace.Find(signal, 0);
    ASSERT_TRUE(series != nullptr && series->Has(7)) << signal;
    EXPECT_GT(series->values[7], 0) << signal;
  }
  EXPECT_LT(trace.Find("mfu", 0)->values[7], 1.5);
  EXPECT_LE(trace.Find("device_step_s", 0)->values[7], 1.1 * trace.Find("step_s", 0)->values[7]);
  for (const char* sensor : {"device_temperature_c", "device_power_w", "device_clock_mhz"}) {
    const Series* series = trace.Find(sensor, 0);  // read once a second at most
    ASSERT_TRUE(series != nullptr && series->Has(0)) << sensor;
    EXPECT_GT(series->values[0], 10) << sensor;
    EXPECT_LT(series->values[0], 5000) << sensor;
  }
  // Where the tool gives a number, NVML has the sensor, and the run must have it.
  const std::pair<const char*, const char*> kOfDefects[] = {
      {"device_ecc_errors", "ecc.errors.uncorrected.volatile.total"},
      {"device_corrected_errors", "ecc.errors.corrected.volatile.total"},
      {"device_remapped_rows", "remapped_rows.correctable"},
      {"device_throttled", "clocks_throttle_reasons.active"},
  };
  for (const auto& [sensor, query] : kOfDefects) {
    const Series* series = trace.Find(sensor, 0);
    const bool is_recorded = series != nullptr && series->Has(0);
    const std::string said = AskNvidiaSmi(query);
    std::cout << sensor << ": " << (is_recorded ? std::to_string(series->values[0]) : "none")
              << "; nvidia-smi: " << (said.empty() ? "nothing" : said) << std::endl;
    if (!said.empty() && std::isdigit(static_cast<unsigned char>(said[0])) != 0) {
      ASSERT_TRUE(is_recorded) << sensor;
    }
    if (is_recorded) {
      EXPECT_GE(series->values[0], 0) << sensor;
    }
  }
  std::string backend, allocator;
  bool reduced = false;
  for (const Event& event : trace.events) {
    if (event.name == "attention_chosen") backend = event.fields.value("backend", "");
    if (event.name != "device_opened") continue;
    allocator = event.fields.value("allocator", "");
    reduced = event.fields.value("reduced_sums", false);
    ASSERT_TRUE(event.fields.contains("tells_of_xids"));
    std::cout << "the driver "
              << (event.fields["tells_of_xids"].get<bool>() ? "tells" : "tells not")
              << " of critical errors" << std::endl;
  }
  EXPECT_TRUE(backend == "flash" || backend == "efficient" || backend == "cudnn") << backend;
  EXPECT_NE(allocator.find("expandable_segments"), std::string::npos) << allocator;
  EXPECT_TRUE(reduced);
}

}  // namespace
}  // namespace trainwreck
