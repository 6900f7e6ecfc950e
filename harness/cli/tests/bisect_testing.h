// Generated repositories of a small compiled target, whose commits fail at a known rate, for tests
// of bisect from end to end.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// The content of a commit's header. The target fails in `fail_percent` of the seeds.
struct TestCommit {
  int fail_percent = 0;
  bool builds = true;
  bool is_comment = false;  // the same program as the commit before
  bool crashes = false;     // fails in another way than the wanted one
  int merges = -1;          // also a child of the commit of this number
  int parent = -1;          // -1: the one before
  bool hangs = false;       // its build does
  std::string declaration;  // trainwreck.yaml
};

// A script before the fake target. It slows the descent in some seeds, so that the symptom shows in
// control as well.
inline constexpr const char* kTarget = R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "behaviour.h"
static char text[1 << 20];
static char changed[1 << 20];
int main(int argc, char** argv) {
  char* fake = getenv("FAKE");
  if (argc > 1 && strcmp(argv[1], "--describe") == 0) {
    char line[4096];
    snprintf(line, sizeof line, "'%s' --describe | sed 's/fork-server/plain/'", fake);
    return system(line) != 0;
  }
  FILE* file = fopen(getenv("TRAINWRECK_PLAN"), "r");
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  if (CRASHES) abort();
  unsigned seed = atoi(strstr(text, "\"seed\":") + 7);
  unsigned draw = (seed + 1) * 2654435761u;
  draw ^= draw >> 15; draw *= 2246822519u; draw ^= draw >> 13;
  char* rate = strstr(text, "\"optimizer.lr\":") + 15;
  double lr = atof(rate) * (draw % 100 < FAIL_PERCENT ? 0.02 : 1.0);
  char* rest = rate + strcspn(rate, ",}");
  snprintf(changed, sizeof changed, "%.*s%.17g%s", (int)(rate - text), text, lr, rest);
  char path[4096];
  snprintf(path, sizeof path, "%s/changed.json", getenv("TRAINWRECK_TRACE"));
  file = fopen(path, "w");
  fputs(changed, file);
  fclose(file);
  setenv("TRAINWRECK_PLAN", path, 1);
  fprintf(stderr, "%s\n", revision);
  execl(fake, fake, (char*)0);
  return 1;
}
)";

class Repo {
 public:
  explicit Repo(const std::vector<TestCommit>& commits) {
    folder_.Write("import", Stream(commits));
    folder_.Write("setup",
                  "git init -q . && git config user.name t && git config user.email t@t && "
                  "git fast-import --quiet <import && git checkout -q main && rm import setup && "
                  "printf '/cache\n/builds\n' >>.git/info/exclude && "
                  "git rev-list --reverse --topo-order main >order && "
                  "git log --reverse --topo-order --format='%H %s' main >ids\n");
    const Called made = folder_.Shell("sh ./setup");
    EXPECT_EQ(made.status, 0) << made.output();
    std::istringstream lines(folder_.Read("ids"));
    ids_.resize(commits.size());
    for (std::string id, word, number; lines >> id >> word >> number;) {
      ids_.at(std::stoul(number)) = id;
    }
    // The passing scenario of other tests, here as the test.
    folder_.WritePassing("slow", "", "1");
  }

  static std::string Data(const std::string& text) {
    return "data " + std::to_string(text.size()) + "\n" + text + "\n";
  }

  static std::string Stream(const std::vector<TestCommit>& commits) {
    std::string stream;
    int revision = 0;
    for (std::size_t i = 0; i < commits.size(); ++i) {
      const TestCommit& commit = commits[i];
      if (!commit.is_comment) revision = static_cast<int>(i);
      stream += "commit refs/heads/main\nmark :" + std::to_string(i + 1) + "\ncommitter t <t@t> " +
                std::to_string(1000000 + i) + " +0000\n" + Data("commit " + std::to_string(i));
      if (i > 0) {
        const int parent = commit.parent >= 0 ? commit.parent : static_cast<int>(i) - 1;
        stream += "from :" + std::to_string(parent + 1) + "\n";
      }
      if (commit.merges >= 0) stream += "merge :" + std::to_string(commit.merges + 1) + "\n";
      stream += "M 100644 inline train.c\n" + Data(kTarget);
      if (commit.hangs) stream += "M 100644 inline hangs\n" + Data("");
      if (!commit.hangs && i > 0 && commits[i - 1].hangs) stream += "D hangs\n";
      if (!commit.declaration.empty()) {
        stream += "M 100644 inline stack/trainwreck.yaml\n" + Data(commit.declaration);
      } else if (i > 0 && !commits[i - 1].declaration.empty()) {
        stream += "D stack/trainwreck.yaml\n";
      }
      stream += "M 100644 inline .gitignore\n" + Data("/train\n");
      stream += "M 100644 inline behaviour.h\n" +
                Data("// commit " + std::to_string(i) + "\n#define FAIL_PERCENT " +
                     std::to_string(commit.fail_percent) + "\n#define CRASHES " +
                     (commit.crashes ? "1" : "0") + "\nstatic const char* revision = \"" +
                     std::to_string(revision) + "\";\n" + (commit.builds ? "" : "#error broken\n"));
    }
    return stream + "done\n";
  }

  // The command line of a bisection of all commits; `build` goes before the compiler.
  std::string Command(const std::string& more = "", const std::string& build = "") const {
    return "bisect fake/slow --good " + ids_.front() + " --bad " + ids_.back() +
           " --target train --build '" + build + "gcc -O1 -o train train.c && echo x >>" +
           folder_.path() + "/builds' " + more;
  }
  Called Bisect(const std::string& more = "", const std::string& build = "") const {
    return folder_.Call(Command(more, build), "FAKE='" + folder_.target() + "'");
  }

  int Builds() const {
    const std::string lines = folder_.Read("builds");
    return static_cast<int>(lines.size() / 2);
  }
  std::vector<Json> Log() const {
    const std::string path = folder_.Shell("cat .trainwreck/bisect/*/log.jsonl").out;
    std::istringstream lines(path);
    std::vector<Json> records;
    for (std::string line; std::getline(lines, line);) {
      records.push_back(Json::parse(line, nullptr, false));
    }
    return records;
  }
  // The state that bisect must not change: checkout, index, stashes, branches, worktrees.
  std::string State() const {
    return folder_
        .Shell(
            "git rev-parse HEAD && git symbolic-ref HEAD && git status --porcelain && git stash "
            "list && "
            "git for-each-ref && git worktree list | wc -l && git ls-files --stage | sort")
        .out;
  }

  std::string Short(int number) const { return ids_.at(number).substr(0, 7); }
  const std::string& id(int number) const { return ids_.at(number); }
  const CliFolder& folder() const { return folder_; }

 private:
  CliFolder folder_;
  std::vector<std::string> ids_;
};

inline std::string Culprits(const Called& called) {
  const std::size_t begin = called.out.find("\nculprit\n");
  if (begin == std::string::npos) return "";
  return called.out.substr(begin + 9, called.out.find("confidence", begin) - begin - 9);
}

inline std::vector<TestCommit> Line(int count, int culprit, int fail_percent) {
  std::vector<TestCommit> commits(count);
  for (int i = culprit; i < count; ++i) commits[i].fail_percent = fail_percent;
  return commits;
}

}  // namespace trainwreck
