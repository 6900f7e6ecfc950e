// What is kept of a job, and what its tasks do.
#include "harness/slurm/job.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

std::string NewFolder() {
  const char* tmp = std::getenv("TEST_TMPDIR");
  std::string name = std::string(tmp != nullptr ? tmp : "/tmp") + "/slurm-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) std::abort();
  return name;
}

TEST(SlurmJob, IsFoundAgainUntilItIsOver) {
  const std::string output = NewFolder();
  EXPECT_FALSE(LoadSlurmJob(output));
  SlurmJob job = NewSlurmJob("run -k nan", 2);
  EXPECT_NE(job.name, NewSlurmJob("run -k nan", 2).name);
  EXPECT_FALSE(job.WasSubmitted());
  job.shards[1] = {.job = 17, .ends = {"NODE_FAIL"}};
  EXPECT_TRUE(job.WasSubmitted());
  StoreSlurmJob(output, job);
  const auto found = LoadSlurmJob(output);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->name, job.name);
  EXPECT_EQ(found->command, "run -k nan");
  ASSERT_EQ(found->shards.size(), 2u);
  EXPECT_EQ(found->shards[0].job, 0);
  EXPECT_EQ(found->shards[1].job, 17);
  EXPECT_EQ(found->shards[1].ends, std::vector<std::string>{"NODE_FAIL"});
  job.is_over = true;
  StoreSlurmJob(output, job);
  EXPECT_FALSE(LoadSlurmJob(output));
  WriteWholeFile(output + "/slurm/job.json", "{\"name\": 1}");
  EXPECT_THROW(LoadSlurmJob(output), ConfigurationError);
}

TEST(SlurmJob, AttemptsWithVerdictsAreFoundTheNewestLast) {
  const std::string folder = NewFolder();
  WriteWholeFile(folder + "/2/17.0/verdicts.json", "{}");
  WriteWholeFile(folder + "/2/9.0/verdicts.json", "{}");
  WriteWholeFile(folder + "/2/20.0/log", "");
  WriteWholeFile(folder + "/1/17.0/verdicts.json", "{}");
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(folder + "/2/9.0/verdicts.json", now - std::chrono::hours(1));
  EXPECT_EQ(AttemptsOf(folder, 2),
            (std::vector<std::string>{folder + "/2/9.0", folder + "/2/17.0"}));
  EXPECT_TRUE(AttemptsOf(folder, 3).empty());
}

TEST(SlurmJob, ScriptsTakeWordsAsTheyAre) {
  const std::string folder = NewFolder();
  const std::string script = folder + "/shard.sh";
  WriteWholeFile(script, ShardScript("/bin/echo", {"-k", "a b'c", "$HOME"}, folder, "/o u", 3));
  const std::string out = folder + "/out";
  const std::string call = "SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_JOB_ID=17 sh " + script + " > " + out;
  ASSERT_EQ(std::system(call.c_str()), 0);
  EXPECT_EQ(ReadWholeFile(out),
            "run -k a b'c $HOME --history none --shard 2/3 --output /o u/2/17.0\n");
}

}  // namespace
}  // namespace trainwreck
