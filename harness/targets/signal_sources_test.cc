// Where the signals of several ranks come from.
#include "harness/targets/signal_sources.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "harness/protocol/rank_files.h"

namespace trainwreck {
namespace signal_sources_test {

class SignalSourcesTest : public testing::Test {
 protected:
  SignalSourcesTest() {
    const char* tmp = std::getenv("TEST_TMPDIR");
    std::string name = std::string(tmp != nullptr ? tmp : "/tmp") + "/sources-XXXXXX";
    folder_ = mkdtemp(name.data());
    guard_folder_ = GuardFolder(folder_, "train", 0);
    std::filesystem::create_directories(guard_folder_);
    guards_ = std::make_unique<RankGuards>(guard_folder_, 2);
    SourceSpec source;
    source.pattern = R"(step (?P<step>\d+): loss (?P<loss>\S+))";
    source.step = "step";
    source.names = {{"loss", "loss"}};
    spec_.sources = {source};
    sources_ = std::make_unique<SignalSources>(
        spec_, *guards_, 0, 2,
        [this](int rank, const StepValues& values) {
          read_.push_back(std::to_string(rank) + ":" + std::to_string(values.step) + "=" +
                          std::to_string(values.values.at("loss")).substr(0, 3));
        },
        [this](int rank, const std::string&, const std::string& text, const std::string&) {
          read_.push_back(std::to_string(rank) + "?" + text);
        });
  }

  static void Append(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::app) << text;
  }
  std::string output_of(int rank) const { return OutputFile(guard_folder_, rank, 1); }

  std::string folder_, guard_folder_;
  TargetSpec spec_;
  std::unique_ptr<RankGuards> guards_;
  std::unique_ptr<SignalSources> sources_;
  std::vector<std::string> read_;
};

TEST_F(SignalSourcesTest, GuardsSayWhichRankWroteALine) {
  Append(folder_ + "/rank0.stdout", "step 0: loss 1.0\nstep 0: loss 3.0\n");  // of the launcher
  Append(output_of(0), "step 0: loss 1.0\n");
  Append(output_of(1), "step 0: loss 3.0\nstep 1: loss x\n");
  sources_->Open({}, folder_, false, /*of_guards=*/true);
  sources_->Read(true);
  EXPECT_EQ(read_, (std::vector<std::string>{"0:0=1.0", "1?x", "1:0=3.0"}));
}

TEST_F(SignalSourcesTest, WithoutGuardsTheOutputIsThatOfTheProcess) {
  Append(folder_ + "/rank0.stdout", "step 0: loss 1.0\n");
  Append(output_of(1), "step 0: loss 3.0\n");
  sources_->Open({}, folder_, false, /*of_guards=*/false);
  sources_->Read(true);
  EXPECT_EQ(read_, std::vector<std::string>{"0:0=1.0"});
}

TEST_F(SignalSourcesTest, OutputThatIsSeenLateIsWaitedFor) {
  GuardedRank ended;
  ended.state = "ended";
  ended.output_bytes = {17, 0};
  ASSERT_TRUE(ReplaceFile(GuardFile(guard_folder_, 1), ToJson(ended).dump()));
  guards_->Read();
  sources_->Open({}, folder_, false, /*of_guards=*/true);
  std::thread late([this] {
    poll(nullptr, 0, 300);
    Append(output_of(1), "step 7: loss 2.0\n");
  });
  sources_->AwaitGuards();
  sources_->Read(true);
  late.join();
  EXPECT_EQ(read_, std::vector<std::string>{"1:7=2.0"});
}

TEST(StartsGuardsTest, LooksForTheWrapper) {
  EXPECT_TRUE(StartsGuards({"srun", "-n", "4", "/opt/bin/trainwreck", "rank", "--", "a.out"}));
  EXPECT_FALSE(StartsGuards({"srun", "-n", "4", "a.out", "rank"}));
  EXPECT_FALSE(StartsGuards({"trainwreck", "run"}));
  EXPECT_FALSE(StartsGuards({}));
}

}  // namespace signal_sources_test
}  // namespace trainwreck
