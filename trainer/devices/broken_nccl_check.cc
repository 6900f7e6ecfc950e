#include <ATen/ops/full.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "harness/protocol/json.h"
#include "trainer/devices/broken_nccl.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A failed group that is destroyed waits for a minute.
constexpr double kSoonS = 45;

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// One call of the group, and the group's end.
std::string CallOnce(const std::string& op, const std::string& folder) {
  try {
    OneRank rank = OpenOneRank({.rank = 0,
                                .world_size = 1,
                                .rendezvous_file = folder + "/rendezvous",
                                .timeout_s = 20,
                                .dump_dir = folder});
    at::Tensor tensor = at::full({3}, 2.0, at::kFloat);
    if (rank.device != nullptr) tensor = tensor.to(rank.device->torch_device());
    std::string said;
    try {
      if (op == "all_reduce") rank.communicator->AllReduce(tensor, Reduction::kSum);
      if (op == "broadcast") rank.communicator->Broadcast(tensor, 0);
      if (op == "reduce") rank.communicator->Reduce(tensor, 0);
      said = "went on with " + std::to_string(tensor.cpu()[2].item<float>());
    } catch (const std::exception& error) {
      said = error.what();
    }
    rank.communicator.reset();
    return said + "; and left";
  } catch (const std::exception& error) {
    return std::string("no group: ") + error.what();
  }
}

class BrokenNccl : public testing::Test {
 protected:
  // The program that Break() starts, with the shim, does this alone.
  static void SetUpTestSuite() {
    const char* const op = std::getenv("BROKEN_NCCL_OP");
    if (op == nullptr) return;
    const std::string folder = std::getenv("BROKEN_NCCL_FOLDER");
    std::ofstream(folder + "/said") << CallOnce(op, folder);
    _exit(0);  // as the trainer ends
  }
  void SetUp() override {
    const std::string why = WhyNothingIsBroken();
    if (!why.empty()) GTEST_SKIP() << why;
  }

  // What the rank says of its call, when NCCL's calls are treated by these rules.
  std::string Break(const std::string& rules, const std::string& op) {
    folder_ = std::make_unique<ScratchFolder>();
    const std::string shim = std::filesystem::absolute(NcclShim()).string();
    end_ = RunForked(
        1,
        [&](int) -> std::string {
          const int output = open(folder_->File("output").c_str(), O_WRONLY | O_CREAT, 0600);
          dup2(output, STDOUT_FILENO);
          dup2(output, STDERR_FILENO);
          setenv("LD_PRELOAD", shim.c_str(), 1);
          setenv("TRAINWRECK_NCCL", rules.c_str(), 1);
          setenv("TRAINWRECK_NCCL_LOG", folder_->File("acts").c_str(), 1);
          setenv("BROKEN_NCCL_OP", op.c_str(), 1);
          setenv("BROKEN_NCCL_FOLDER", folder_->path().c_str(), 1);
          for (const char* of_this_test : {"XML_OUTPUT_FILE", "TEST_PREMATURE_EXIT_FILE"}) {
            unsetenv(of_this_test);
          }
          setenv("ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0", 1);
          execl("/proc/self/exe", "broken_nccl", "--gtest_filter=BrokenNccl.*", nullptr);
          throw std::runtime_error("this program cannot be started again");
        },
        /*limit_s=*/120)[0];
    EXPECT_EQ(end_.exit_code, 0) << end_.output << Read(folder_->File("output"));
    EXPECT_LT(end_.seconds, kSoonS);
    return Read(folder_->File("said"));
  }
  std::string Acts() const { return Read(folder_->File("acts")); }
  std::string FlightRecorder() const { return Read(folder_->File("flight-recorder-rank0.json")); }

  std::unique_ptr<ScratchFolder> folder_;
  RankEnd end_;
};

TEST_F(BrokenNccl, ACallThatFailsIsNamedAndItsGroupIsLeft) {
  for (const std::string op : {"all_reduce", "broadcast", "reduce"}) {
    SCOPED_TRACE(op);
    const std::string call = op == "all_reduce" ? "1" : "0";  // the first all-reduce connects
    const std::string said = Break("op=" + op + " call=" + call + " do=error code=3", op);
    EXPECT_THAT(said, StartsWith(op + " (call 0 of rank 0 of 1): "));
    EXPECT_THAT(said, HasSubstr("NCCL error"));
    EXPECT_THAT(said, HasSubstr("; and left"));
    EXPECT_THAT(Acts(), HasSubstr(R"("how": "error", "op": ")" + op + '"'));
    const Json json = Json::parse(FlightRecorder(), nullptr, /*allow_exceptions=*/false);
    ASSERT_FALSE(json.is_discarded()) << FlightRecorder();
    EXPECT_FALSE(json["entries"].empty());
  }
}

TEST_F(BrokenNccl, AConnectionThatFailsIsAnError) {
  const std::string said = Break("op=all_reduce call=0 do=error code=3", "all_reduce");
  EXPECT_THAT(said, StartsWith("no group: "));
  EXPECT_THAT(said, HasSubstr("NCCL error"));
  EXPECT_THAT(Acts(), HasSubstr(R"("how": "error", "op": "all_reduce")"));
}

TEST_F(BrokenNccl, ACallThatIsHeldBackIsOnlyLate) {
  const std::string said = Break("op=all_reduce call=1 do=delay ms=2000", "all_reduce");
  EXPECT_EQ(said, "went on with 2.000000; and left");
  EXPECT_GT(end_.seconds, 2);
  EXPECT_THAT(Acts(), HasSubstr(R"("how": "delay", "op": "all_reduce")"));
  EXPECT_EQ(FlightRecorder(), "");
}

TEST_F(BrokenNccl, UnbrokenCallsGoOn) {
  EXPECT_EQ(Break("op=all_reduce call=1000 do=error", "broadcast"),
            "went on with 2.000000; and left");
  EXPECT_EQ(Acts(), "");
}

}  // namespace
}  // namespace trainwreck
