#include "harness/launch/device_assert.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/launch/fake_runs.h"
#include "harness/launch/run_folder.h"
#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace device_assert_test {

RunResult Failed(const std::string& last_words) {
  RunResult result;
  result.end = RunEnd::kFailed;
  result.exits = {{.rank = 0, .code = 0}, {.rank = 1, .code = 1, .last_words = last_words}};
  return result;
}

TEST(DeviceAssert, IsSeenInTheLastWordsOfAProgramWithoutEvents) {
  EXPECT_EQ(RankWithDeviceAssert(
                Failed("torch.AcceleratorError: CUDA error: device-side assert triggered")),
            1);
  EXPECT_EQ(RankWithDeviceAssert(Failed("CUDA error: out of memory")), std::nullopt);
  EXPECT_EQ(RankWithDeviceAssert(Failed("cudaEventSynchronize: unspecified launch failure")),
            std::nullopt);
  // As an H200 once said it.
  EXPECT_EQ(RankWithDeviceAssert(
                Failed("IndexKernelUtils.cu:16: vectorized_gather_kernel: block: [5,0,0], thread: "
                       "[31,0,0] Assertion `ind >=0 && ind < ind_dim_size` failed.\n"
                       "cudaEventSynchronize: unspecified launch failure")),
            1);
  RunResult survived = Failed("RuntimeError: CUDA error: device-side assert triggered");
  survived.end = RunEnd::kCompleted;  // by a restart
  EXPECT_EQ(RankWithDeviceAssert(survived), std::nullopt);
}

// PyTorch says more behind the error than last words have.
TEST(DeviceAssert, IsSeenInWhatTheAttemptWroteBeforeItsLastWords) {
  const std::string earlier = "CUDA error: device-side assert triggered\n";
  RunResult result = Failed("one\ntwo\nthree");
  result.folder = FreshFolder("run");
  const std::string path = result.folder + "/rank1.stderr";
  WriteFile(path, earlier + "one\ntwo\nthree\n");
  EXPECT_EQ(RankWithDeviceAssert(result), 1);
  result.exits[1].stderr_begin = static_cast<std::int64_t>(earlier.size());
  EXPECT_EQ(RankWithDeviceAssert(result), std::nullopt) << "an attempt before wrote it";
  result.exits[1].stderr_begin = 0;
  result.exits[1].code = 0;
  EXPECT_EQ(RankWithDeviceAssert(result), std::nullopt) << "that rank did not fail";
}

// What torchrun wrote has the words of its workers; its own report names the rank.
TEST(DeviceAssert, IsThatOfTheRankBelowALauncherOfTheProgram) {
  RunResult result = Failed("CUDA error: device-side assert triggered");
  result.trace.events.push_back({"rank_failed", 7, 3, 0.5, {{"code", 1}}});
  EXPECT_EQ(RankWithDeviceAssert(result), 3);
}

TEST(DeviceAssert, IsMadeOnceMoreWithoutRestarts) {
  trainwreck::Run run = FakeRun("a/b", "completes");
  run.policy.max_restarts = 3;
  run.environment["OWN"] = "1";
  const trainwreck::Run again = WithBlockingLaunches(run);
  EXPECT_EQ(again.id, "a/b/blocking");
  EXPECT_EQ(again.policy.max_restarts, 0);
  EXPECT_EQ(again.environment,
            (std::map<std::string, std::string>{{"CUDA_LAUNCH_BLOCKING", "1"}, {"OWN", "1"}}));
}

TEST(DeviceAssert, ARepetitionThatDoesNotFailSaysSoAndNoMore) {
  RunResult result = Failed("CUDA error: device-side assert triggered");
  result.detail = "rank 1 exited with code 1";
  RunResult repeated;
  repeated.end = RunEnd::kCompleted;
  AddDeviceAssert(repeated, result);
  EXPECT_EQ(result.detail,
            "rank 1 exited with code 1; made once more with CUDA_LAUNCH_BLOCKING=1, it did not "
            "fail so");
  EXPECT_TRUE(result.trace.events.empty());
}

// The fake names the stage at fault only with blocking launches, as a GPU does.
class DeviceAssertTest : public testing::TestWithParam<Isolation> {};
INSTANTIATE_TEST_SUITE_P(Isolation, DeviceAssertTest,
                         testing::Values(Isolation::kFork, Isolation::kExec));

TEST_P(DeviceAssertTest, IsMadeOnceMoreWithBlockingLaunches) {
  int finished = 0;
  const std::list<trainwreck::Run> runs = {
      FakeRun("a/assert", "device_assert"), FakeRun("a/throws", "throws"),
      FakeRun("a/peer", "device_assert",
              {{"parallel.ranks", 2}, {"fake.rank", 1}, {"fake.at", 5}})};
  auto results = RunFakes(runs, GetParam(), {}, {}, [&](int, int done, int) { finished = done; });
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(finished, 3) << "repetitions do not count";
  const RunResult& result = results.at("a/assert");
  EXPECT_EQ(result.end, RunEnd::kFailed);
  EXPECT_EQ(result.restarts, 0);
  EXPECT_EQ(result.exits.size(), 1u);
  ASSERT_EQ(EventsNamed(result.trace, "exception").size(), 1u);
  EXPECT_EQ(EventsNamed(result.trace, "exception")[0].fields["stage"], "backward");
  const std::vector<Event> found = EventsNamed(result.trace, "device_assert");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 3);
  EXPECT_EQ(found[0].fields["rank"], 0);
  EXPECT_EQ(found[0].fields["stage"], "forward");
  EXPECT_EQ(found[0].fields["op"], "aten::index_select");
  EXPECT_EQ(found[0].fields["within"], "aten::embedding");
  EXPECT_EQ(found[0].fields["kernel"], "indexSelectSmallIndex");
  EXPECT_EQ(found[0].fields["assertion"], "srcIndex < srcSelectDimSize");
  EXPECT_NE(result.detail.find("it failed in step 3, stage forward, in aten::index_select of "
                               "aten::embedding: assertion `srcIndex < srcSelectDimSize` of the "
                               "kernel indexSelectSmallIndex"),
            std::string::npos)
      << result.detail;
  TraceReader stored(result.folder, 1, 20);
  stored.Poll(/*last=*/true);
  EXPECT_EQ(EventsNamed(stored.trace(), "device_assert").size(), 1u) << "also on the disk";
  EXPECT_TRUE(stored.problems().empty());

  const std::vector<Event> of_peer = EventsNamed(results.at("a/peer").trace, "device_assert");
  ASSERT_EQ(of_peer.size(), 1u);
  EXPECT_EQ(of_peer[0].fields["rank"], 1);
  EXPECT_EQ(of_peer[0].step, 5);
  EXPECT_TRUE(EventsNamed(results.at("a/throws").trace, "device_assert").empty());
  EXPECT_FALSE(std::filesystem::exists(results.at("a/throws").folder + "/blocking"));
}

TEST_P(DeviceAssertTest, OfAProgramInPythonIsSeenToo) {
  const auto results = RunFakes(
      {FakeRun("a/assert", "python_assert"), FakeRun("a/failure", "python_launch_failure")},
      GetParam());
  for (const auto& [id, result] : results) {
    EXPECT_TRUE(EventsNamed(result.trace, "exception").empty()) << id;
    const std::vector<Event> found = EventsNamed(result.trace, "device_assert");
    ASSERT_EQ(found.size(), 1u) << id << ": " << result.detail;
    EXPECT_EQ(found[0].step, 3);
    EXPECT_EQ(found[0].fields["kernel"], "indexSelectSmallIndex");
    EXPECT_EQ(found[0].fields["assertion"], "srcIndex < srcSelectDimSize");
    EXPECT_NE(result.detail.find("made once more with CUDA_LAUNCH_BLOCKING=1, it failed in step 3"),
              std::string::npos)
        << result.detail;
  }
  EXPECT_EQ(results.at("a/failure").exits[0].last_words,
            "  File \"train.py\", line 12, in <module>\n    loss.item()\n"
            "torch.AcceleratorError: CUDA error: unspecified launch failure");
}

}  // namespace device_assert_test
}  // namespace trainwreck
