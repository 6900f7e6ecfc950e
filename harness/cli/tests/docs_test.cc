// The examples of docs/guide/cli.md, run as they stand, and the pipeline files of docs/guide/ci.md,
// parsed.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Blocks(const std::string& path, const std::string& language) {
  std::vector<std::string> blocks;
  std::istringstream lines(ReadAll(path));
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!is_inside && line == "```" + language) {
      is_inside = true;
      blocks.emplace_back();
    } else if (is_inside && line == "```") {
      is_inside = false;
    } else if (is_inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

struct Example {
  std::string command;
  std::string expected;
};

std::vector<Example> Examples(const std::string& path) {
  std::vector<Example> examples;
  for (const std::string& block : Blocks(path, "console")) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("$ ", 0) == 0) {
        examples.push_back({line.substr(2), ""});
      } else {
        examples.back().expected += line + "\n";
      }
    }
  }
  return examples;
}

// `...` in `expected` matches any text.
bool MatchesExample(const std::string& expected, const std::string& seen) {
  std::vector<std::string> parts = {""};
  for (std::size_t i = 0; i < expected.size();) {
    if (expected.compare(i, 3, "...") == 0) {
      parts.emplace_back();
      i += 3;
    } else {
      parts.back() += expected[i++];
    }
  }
  if (parts.size() == 1) return seen == expected;
  if (seen.rfind(parts.front(), 0) != 0) return false;
  std::size_t at = parts.front().size();
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    at = seen.find(parts[i], at);
    if (at == std::string::npos) return false;
    at += parts[i].size();
  }
  const std::string& last = parts.back();
  return seen.size() >= at + last.size() &&
         seen.compare(seen.size() - last.size(), last.size(), last) == 0;
}

TEST(MatchesExample, TakesDotsForAnyText) {
  EXPECT_TRUE(MatchesExample("a\n", "a\n"));
  EXPECT_FALSE(MatchesExample("a\n", "b\n"));
  EXPECT_TRUE(MatchesExample("a ... c\n", "a b c\n"));
  EXPECT_TRUE(MatchesExample("a\n...\nc\n", "a\nb\nb\nc\n"));
  EXPECT_FALSE(MatchesExample("a ... c\n", "a b d\n"));
  EXPECT_FALSE(MatchesExample("a\n...x...\n", "a\nb\n"));
  EXPECT_FALSE(MatchesExample("a...ab\n", "ab\n"));
}

// Without the lines of progress, which only a slow machine has.
std::string WithoutProgress(const std::string& text) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# ") || !Contains(line, " runs done, ")) kept += line + "\n";
  }
  return kept;
}

// All examples of a document, in a folder of their own.
void ExpectExamplesRun(const std::string& document, std::size_t at_least) {
  const CliFolder folder;
  const std::string program_folder = std::filesystem::path(folder.program()).parent_path();
  const std::string trainer = std::filesystem::absolute("trainer/trainwreck-trainer");
  const std::string environment =
      "TRAINWRECK_TARGET='" + trainer + "' PATH='" + program_folder + "':\"$PATH\"";
  const std::vector<Example> examples = Examples(document);
  EXPECT_GE(examples.size(), at_least);
  for (const Example& example : examples) {
    // One stream, as on a terminal.
    folder.Write("example.sh", example.command + "\n");
    const Called called = folder.Shell("bash example.sh 2>&1", environment);
    EXPECT_TRUE(MatchesExample(example.expected, WithoutProgress(called.out)))
        << "$ " << example.command << "\nexpected:\n"
        << example.expected << "seen:\n"
        << called.out;
  }
}

TEST(Docs, ExamplesOfTheCommandLineRunAsTheyStand) { ExpectExamplesRun("docs/guide/cli.md", 28); }

TEST(Docs, ExamplesOfTheHistoryRunAsTheyStand) { ExpectExamplesRun("docs/guide/history.md", 16); }

TEST(Docs, EveryVerbAndOptionIsDescribed) {
  const CliFolder folder;
  const std::string text = ReadAll("docs/guide/cli.md");
  for (const char* verb :
       {"run",     "list",     "validate", "explain", "doctor",   "check",   "rerun",
        "report",  "merge",    "show",     "export",  "new",      "schema",  "matrix",
        "checkup", "lr-range", "seeds",    "history", "baseline", "compare", "layers",
        "memory",  "replay",   "inspect",  "overfit", "fits",     "timeline"}) {
    EXPECT_TRUE(Contains(text, "\n## " + std::string(verb) + "\n")) << verb;
    std::istringstream words(folder.Call(std::string(verb) + " --help").out);
    for (std::string word; words >> word;) {
      const std::size_t begin = word.find("--");
      if (begin == std::string::npos || word == "--help" || word == "-h,--help") continue;
      const std::string option = word.substr(begin, word.find_first_of(",=:;)'", begin) - begin);
      if (option.size() <= 3) continue;
      EXPECT_TRUE(Contains(text, option)) << verb << " " << option;
    }
  }
}

TEST(Docs, PipelineFilesParse) {
  const std::vector<std::string> pipelines = Blocks("docs/guide/ci.md", "yaml");
  ASSERT_EQ(pipelines.size(), 2U);
  const YAML::Node github = YAML::Load(pipelines[0]);
  EXPECT_EQ(github["jobs"]["scenarios"]["strategy"]["matrix"]["shard"].size(), 4U);
  for (const YAML::Node& step : github["jobs"]["scenarios"]["steps"]) {
    EXPECT_NE(step["run"].IsDefined(), step["uses"].IsDefined());
  }
  const YAML::Node gitlab = YAML::Load(pipelines[1]);
  EXPECT_EQ(gitlab["scenarios"]["parallel"].as<int>(), 4);
  EXPECT_EQ(gitlab["merged"]["artifacts"]["reports"]["junit"].as<std::string>(), "out/junit.xml");
  const std::vector<std::string> groovy = Blocks("docs/guide/ci.md", "groovy");
  ASSERT_EQ(groovy.size(), 1U);
  int depth = 0;
  for (char c : groovy[0]) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    EXPECT_GE(depth, 0);
  }
  EXPECT_EQ(depth, 0);
}

// The command that all three pipelines call, with its options: a dry run must accept them.
TEST(Docs, PipelinesCallTheProgramWithOptionsThatItKnows) {
  const CliFolder folder;
  for (const char* name : {"a", "b", "c", "d"}) folder.WritePassing(name);
  folder.Write("ci/shard_costs.json", ReadAll("ci/shard_costs.json"));
  int calls = 0;
  std::istringstream lines(ReadAll("docs/guide/ci.md"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find("ci/run_scenarios.sh ");
    if (begin == std::string::npos) continue;
    std::string options = line.substr(begin + 20);
    options.erase(options.find_last_not_of('\'') + 1);
    for (const char* index :
         {"${{ matrix.shard }}", "$SHARD", "\"$CI_NODE_INDEX/$CI_NODE_TOTAL\""}) {
      const std::size_t at = options.find(index);
      if (at == std::string::npos) continue;
      options.replace(at, std::string(index).size(),
                      options.find("CI_NODE") != std::string::npos ? "2/4" : "2");
    }
    EXPECT_EQ(folder.Call("run --dry-run " + options).status, 0) << options;
    EXPECT_TRUE(Contains(options, "--shard-costs ci/shard_costs.json")) << options;
    ++calls;
  }
  EXPECT_EQ(calls, 3);
}

TEST(Docs, PipelinesMergeTheirShards) {
  const CliFolder folder;
  for (const char* name : {"a", "b"}) folder.WritePassing(name);
  for (const char* index : {"1", "2"}) {
    folder.Call(std::string("run --history none --shard ") + index + "/2 --output shards/" + index);
  }
  int calls = 0;
  std::istringstream lines(ReadAll("docs/guide/ci.md"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find("trainwreck merge ");
    if (line.find("bazel-bin/") == std::string::npos || begin == std::string::npos) continue;
    const Called called = folder.Call(line.substr(begin + 11));
    EXPECT_EQ(called.status, 0) << line << called.output();
    EXPECT_TRUE(folder.Has("out/junit.xml"));
    ++calls;
  }
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace trainwreck
