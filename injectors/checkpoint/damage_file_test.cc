#include "injectors/checkpoint/testing_disk.h"

namespace trainwreck {
namespace {

TEST(DamageFile, IsFoundByTheStoreInEachWay) {
  for (const auto& [how, why] : std::map<std::string, std::string>{
           {"truncated", "torn: "},
           {"bit_rot", "entry model.weight is damaged"},
           {"older", "it belongs to step 10 of rank 0"},
           {"other_world_size", "it was saved by 2 ranks and cannot be read by 1"}}) {
    Disk disk;
    EXPECT_EQ(disk.WholeAfter("checkpoint.damage_file", {{"how", how}}), std::vector<int>{10})
        << how;
    EXPECT_NE(disk.why.find(why), std::string::npos) << how << ": " << disk.why;
    ASSERT_EQ(disk.bench.fired().size(), 1U) << how;
    EXPECT_EQ(disk.bench.fired()[0]["steps_done"], 20) << how;
  }
}

TEST(DamageFile, LeavesNoTraceOfADeletedFile) {
  Disk disk;
  EXPECT_EQ(disk.WholeAfter("checkpoint.damage_file", {{"how", "deleted"}}), std::vector<int>{10});
  EXPECT_EQ(disk.why, "") << "only a peer, whose file is there, can miss it";
  EXPECT_EQ(disk.bench.fired()[0]["after"], "none");
}

TEST(DamageFile, OfAnotherModelIsWholeAndHasOtherShapes) {
  Disk disk;
  EXPECT_EQ(disk.WholeAfter("checkpoint.damage_file", {{"how", "other_model"}}),
            (std::vector<int>{10, 20}));
  EXPECT_EQ(disk.Store()->Load(20).at("model.weight").size(0), 8192);
}

}  // namespace
}  // namespace trainwreck
