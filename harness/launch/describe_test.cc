#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/launch/fake_runs.h"
#include "harness/launch/launcher.h"
#include "harness/launch/private_file.h"

namespace trainwreck {
namespace describe_test {

Target Shell(const std::string& script) {
  Target target;
  target.command = {"/bin/sh", "-c", script};
  return target;
}

std::string ErrorOf(const Target& target, const std::string& cache) {
  try {
    Describe(target, cache);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

int FilesIn(const std::string& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<int>(std::distance(begin(files), end(files)));
}

TEST(DescribeTest, AsksTheTargetAndAddsTheHarnessesOwn) {
  const std::string cache = FreshFolder("cache");
  const TargetDescription description = Describe(FakeTarget(), cache);
  EXPECT_EQ(description.name, "fake");
  EXPECT_NE(description.FindRecipeKey("fake.mode"), nullptr);
  EXPECT_NE(description.FindRecipeKey("supervisor.max_restarts"), nullptr);
  EXPECT_NE(description.FindEvent("stalled"), nullptr);
  EXPECT_EQ(FilesIn(cache), 1);
}

TEST(DescribeTest, AsksOnceUntilTheTargetChanges) {
  const std::string cache = FreshFolder("cache");
  const std::string count = cache + "/../count." + std::to_string(getpid());
  const std::string script = FreshFolder("script") + "/target.sh";
  auto write = [&](const std::string& comment) {
    std::ofstream(script) << "echo asked >> " << count << "; exec " << FakeTargetPath()
                          << " --describe # " << comment << "\n";
  };
  auto asked = [&] {
    std::ifstream file(count);
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  };
  Target target;
  target.command = {"/bin/sh", script};
  write("one");
  EXPECT_EQ(Describe(target, cache).name, "fake");
  EXPECT_EQ(Describe(target, cache).name, "fake");
  EXPECT_EQ(asked(), 1);
  write("two");
  EXPECT_EQ(Describe(target, cache).name, "fake");
  EXPECT_EQ(asked(), 2);
  // A damaged cache is no failure.
  for (const auto& entry : std::filesystem::directory_iterator(cache)) {
    std::ofstream(entry.path()) << "{\"half\":";
  }
  EXPECT_EQ(Describe(target, cache).name, "fake");
  EXPECT_EQ(asked(), 3);
}

TEST(DescribeTest, SaysWhatIsWrong) {
  const std::string cache = FreshFolder("cache");
  Target missing;
  missing.command = {"/no/such/program"};
  EXPECT_EQ(ErrorOf(missing, cache),
            "cannot start the target: No such file or directory: /no/such/program");
  EXPECT_EQ(ErrorOf(Shell("echo broken >&2; exit 3"), cache),
            "/bin/sh --describe exited with code 3: broken");
  EXPECT_EQ(ErrorOf(Shell("kill -9 $$"), cache), "/bin/sh --describe was killed by SIGKILL");
  EXPECT_NE(ErrorOf(Shell("echo hello"), cache)
                .find("/bin/sh --describe printed no description: not JSON: parse error at line 1"),
            std::string::npos);
  EXPECT_NE(ErrorOf(Shell("echo '{}'"), cache).find("printed no description"), std::string::npos);
  EXPECT_EQ(FilesIn(cache), 0);  // nothing of it is kept
}

// A parser would recurse.
TEST(DescribeTest, RefusesADescriptionThatIsNestedDeep) {
  const std::string folder = FreshFolder("deep");
  std::ofstream(folder + "/deep.json") << std::string(100'000, '[') << std::string(100'000, ']');
  EXPECT_EQ(ErrorOf(Shell("cat '" + folder + "/deep.json'"), FreshFolder("cache")),
            "/bin/sh --describe printed no description: nested more than 128 deep");
}

TEST(DescribeTest, TrustsNoCachedDescriptionThatOthersMayWrite) {
  const std::string cache = FreshFolder("cache");
  Describe(FakeTarget(), cache);
  const std::string file = std::filesystem::directory_iterator(cache)->path();
  auto plant = [&](const std::string& name) {
    std::string text = ReadOwnFile(file);
    ASSERT_NE(text.find("\"fake\""), std::string::npos);
    text.replace(text.find("\"fake\""), 6, "\"" + name + "\"");
    std::ofstream(file) << text;
  };
  plant("mine");
  EXPECT_EQ(Describe(FakeTarget(), cache).name, "mine");  // as far as a file of ours is trusted
  chmod(file.c_str(), 0666);
  EXPECT_EQ(Describe(FakeTarget(), cache).name, "fake");
  EXPECT_TRUE(IsOursAlone(file));  // replaced
  plant("linked");
  std::filesystem::rename(file, cache + "/elsewhere");
  std::filesystem::create_symlink(cache + "/elsewhere", file);
  EXPECT_EQ(Describe(FakeTarget(), cache).name, "fake");
  plant("theirs");
  // Not for everybody, nor in a sandbox that knows one user alone.
  if (chown(file.c_str(), 12345, 12345) != 0) return;
  EXPECT_EQ(Describe(FakeTarget(), cache).name, "fake");
}

TEST(DescribeTest, BoundsTheOutput) {
  const std::string error = ErrorOf(Shell("exec cat /dev/zero"), FreshFolder("cache"));
  EXPECT_EQ(error, "/bin/sh --describe was killed by SIGXFSZ");
}

// A program as two checkouts of it have it: a script that reads a file of its own.
Target CopyIn(const std::string& folder, const std::string& word) {
  std::filesystem::create_directories(folder + "/lib");
  std::ofstream(folder + "/run.sh") << "echo run";
  std::ofstream(folder + "/targets.yaml") << "same";
  std::ofstream(folder + "/lib/a.txt") << "a";
  std::ofstream(folder + "/b.txt") << "b";
  Target target;
  target.command = {"/bin/sh", folder + "/targets.yaml", word};
  target.home = folder;
  target.files = {folder + "/b.txt", folder + "/lib/a.txt"};
  return target;
}

TEST(DigestOfTargetTest, IsOfContentsNotOfTheFolder) {
  const std::string one = FreshFolder("one"), two = FreshFolder("two") + "/deeper";
  const std::string digest = DigestOfTarget(CopyIn(one, "x"));
  EXPECT_EQ(DigestOfTarget(CopyIn(two, "x")), digest);
  EXPECT_NE(DigestOfTarget(CopyIn(two, "y")), digest);
  for (const char* file : {"/targets.yaml", "/lib/a.txt", "/b.txt"}) {
    Target changed = CopyIn(two, "x");
    std::ofstream(two + file, std::ios::app) << "\n";
    EXPECT_NE(DigestOfTarget(changed), digest) << file;
  }
  // The same contents under another name are another program.
  Target moved = CopyIn(two, "x");
  std::filesystem::create_directories(two + "/other");
  std::filesystem::rename(two + "/lib/a.txt", two + "/other/a.txt");
  moved.files[1] = two + "/other/a.txt";
  EXPECT_NE(DigestOfTarget(moved), digest);
}

// Files that lie outside, and in another order when sorted by their paths.
TEST(DigestOfTargetTest, FilesElsewhereCountByTheirNames) {
  const std::string base = FreshFolder("shared");
  std::vector<std::string> digests;
  for (const char* home : {"/m", "/z"}) {
    Target target = CopyIn(base + home, "x");
    const std::string shared = base + (home[1] == 'm' ? "/n" : "/k");
    std::filesystem::create_directories(shared);
    std::ofstream(shared + "/common.py") << "common";
    target.files.push_back(shared + "/common.py");
    std::sort(target.files.begin(), target.files.end());
    digests.push_back(DigestOfTarget(target));
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST(DigestOfTargetTest, ALargeFileCountsWithItsSize) {
  const std::string folder = FreshFolder("large");
  Target target = CopyIn(folder, "x");
  std::vector<std::string> digests;
  for (std::int64_t size : {(256LL << 20) + 1, (256LL << 20) + 2}) {
    std::filesystem::resize_file(folder + "/b.txt", static_cast<std::uintmax_t>(size));  // a hole
    digests.push_back(DigestOfTarget(target));
  }
  EXPECT_NE(digests[0], digests[1]);
}

}  // namespace describe_test
}  // namespace trainwreck
