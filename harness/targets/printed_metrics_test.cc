#include "harness/targets/printed_metrics.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

namespace trainwreck {
namespace {

// "train_loss:loss lr:lr, step from 1".
std::string Found(const std::vector<std::string>& lines,
                  const std::vector<std::string>& known = {}) {
  const auto found = FindPrintedMetrics(lines, known);
  if (!found) return "nothing";
  std::string text;
  for (const PrintedMetric& metric : found->metrics) {
    if (metric.role != "step") text += metric.name + ":" + metric.role + " ";
  }
  return text + (!found->has_step ? "no step" : "from " + std::to_string(found->first_step));
}

// What the pattern takes of the line.
std::string Taken(const std::vector<std::string>& lines, const std::string& line) {
  const auto found = FindPrintedMetrics(lines);
  if (!found) return "nothing";
  const RE2 pattern(found->Pattern());
  std::vector<std::string> words(pattern.NumberOfCapturingGroups());
  std::vector<RE2::Arg> arguments;
  for (std::string& word : words) arguments.emplace_back(&word);
  std::vector<const RE2::Arg*> places;
  for (const RE2::Arg& argument : arguments) places.push_back(&argument);
  if (!RE2::PartialMatchN(line, pattern, places.data(), static_cast<int>(places.size()))) {
    return "no match of " + found->Pattern();
  }
  std::string text;
  for (const auto& [group, name] : pattern.CapturingGroupNames()) {
    text += name + "=" + words[group - 1] + " ";
  }
  return text;
}

TEST(PrintedMetrics, HaveTheRolesThatTheirNamesMakePlain) {
  EXPECT_EQ(RoleOfMetric("train/loss"), "loss");
  EXPECT_EQ(RoleOfMetric("Loss"), "loss");
  EXPECT_EQ(RoleOfMetric("val_loss"), "eval_loss");
  EXPECT_EQ(RoleOfMetric("validation/loss"), "eval_loss");
  EXPECT_EQ(RoleOfMetric("gradient_norm"), "grad_norm");
  EXPECT_EQ(RoleOfMetric("learning_rate"), "lr");
  for (const char* other : {"l", "aux_loss", "lossy", "accuracy", "norm", "time"}) {
    EXPECT_EQ(RoleOfMetric(other), "") << other;
  }
}

TEST(PrintedMetrics, AreFoundInTheFormsThatProgramsHave) {
  EXPECT_EQ(Found({"loading", "step 0: loss 2.5 norm 1 lr 0.1", "step 1: loss 2.4 norm 1 lr 0.1"}),
            "loss:loss lr:lr from 0");
  EXPECT_EQ(Found({"{'loss': 2.5, 'grad_norm': 1e-3, 'epoch': 0.1}",
                   "{'loss': 2.4, 'grad_norm': 2.0, 'epoch': 0.2}"}),
            "loss:loss grad_norm:grad_norm no step");
  EXPECT_EQ(Found({"Step 10/100 | train_loss=2.5", "Step 20/100 | train_loss=nan"}),
            "train_loss:loss from 1");
  EXPECT_EQ(Found({"iter 1: loss 2", "iter 2: loss 1", "iter 2: train loss 1, val_loss 3",
                   "iter 4: train loss 1, val_loss 2"}),
            "train loss:loss val_loss:eval_loss from 1");
  EXPECT_EQ(Found({"iter 1: loss 2", "iter 2: loss 1", "iter 3: loss 1", "iter 4: loss 1",
                   "iter 4: train loss 1, val_loss 3"}),
            "loss:loss from 1");
}

TEST(PrintedMetrics, MayHaveAnEvaluationOnce) {
  const std::vector<std::string> lines = {"number of parameters: 10", "iter 0: loss 3, time 5ms",
                                          "iter 1: loss 2, time 5ms",
                                          "step 2: train loss 3.5, val loss 4.5"};
  EXPECT_EQ(Found(lines, {"loss"}), "val loss:eval_loss from 0");
  EXPECT_EQ(Found({"step 2: train loss 3.5, val loss 4.5"}),
            "train loss:loss val loss:eval_loss from 1");
  EXPECT_EQ(Taken({lines[3]}, "step 4: train loss 3, val loss 4"),
            "step=4 train_loss=3 val_loss=4 ");
}

TEST(PrintedMetrics, AreNotGuessed) {
  EXPECT_EQ(Found({}), "nothing");
  EXPECT_EQ(Found({"step 1: loss 2.5"}), "nothing") << "one line is no log";
  EXPECT_EQ(Found({"accuracy 0.5", "accuracy 0.6"}), "nothing");
  EXPECT_EQ(Found({"epoch 1: loss 2", "epoch 2: loss 1"}), "loss:loss no step");
  EXPECT_EQ(Found({"step 5: loss 2", "step 5: loss 1"}), "loss:loss no step") << "it stands still";
  EXPECT_EQ(Found({"step 1: loss 2 val_loss 3", "step 2: loss 1 val_loss 2"}, {"loss"}),
            "val_loss:eval_loss from 1");
  EXPECT_EQ(Found({"step 1: loss 2", "step 2: loss 1"}, {"loss"}), "nothing");
}

TEST(PrintedMetrics, HaveAPatternThatTakesThem) {
  EXPECT_EQ(FindPrintedMetrics({"step 1: loss 2", "step 2: loss 1"})->Pattern(),
            R"(\bstep\s+(?P<step>\d+).*?\bloss\s+(?P<loss>\S+))");
  const std::vector<std::string> lines = {"step 1: val_loss 3, loss 2 (lr 1e-05)",
                                          "step 2: val_loss 2, loss nan (lr 1e-05)"};
  EXPECT_EQ(Taken(lines, lines[0]), "step=1 val_loss=3 loss=2 lr=1e-05 ");
  EXPECT_EQ(Taken(lines, lines[1]), "step=2 val_loss=2 loss=nan lr=1e-05 ");
  EXPECT_EQ(Taken({"{'loss': '2.5', 'lr': 1}", "{'loss': '2', 'lr': 1}"}, "{'loss': '1', 'lr': 2}"),
            "loss=1 lr=2 ");
  EXPECT_EQ(Taken({"Val/Loss: 1.5", "Val/Loss: 1"}, "Val/Loss: 0.5"), "val_loss=0.5 ");
  EXPECT_EQ(Taken({"a/loss 1 loss 2", "a/loss 3 loss 4"}, "a/loss 5 loss 6"), "loss=6 ");
}

}  // namespace
}  // namespace trainwreck
