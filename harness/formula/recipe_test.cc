// recipe(), step(), total(), log, cos and sqrt: what invariants say of a run by its recipe.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "harness/formula/formula.h"
#include "harness/formula/test_support.h"

namespace trainwreck::formula {
namespace recipe_test {

using testing::kMissing;
using testing::kNan;
using testing::Read;
using testing::TestRun;

Formula Parsed(const std::string& text) {
  auto parsed = Formula::Parse(text);
  EXPECT_TRUE(parsed.formula) << text << ": " << parsed.errors.at(0).message;
  return *parsed.formula;
}

Truth WithRate(const std::string& text, double rate, const TestRun& run) {
  const Formula formula = Parsed(text).WithRecipe({{"optimizer.lr", rate}});
  return formula.Evaluate({&run.trace(), {}}, testing::TestTarget()).truth;
}

TEST(Recipe, IsWhatTheRunWasAskedFor) {
  const TestRun run = TestRun(3).With("lr", {0.1, 0.1, 0.1});
  constexpr char kConstant[] = "always abs(lr - recipe(optimizer.lr)) <= 1e-9";
  EXPECT_EQ(WithRate(kConstant, 0.1, run), Truth::kTrue);
  EXPECT_EQ(WithRate(kConstant, 0.2, run), Truth::kFalse);
  EXPECT_EQ(Read(kConstant, run).truth, Truth::kUnknown) << "no recipe is known";
  EXPECT_EQ(Parsed(kConstant).recipe_keys(), std::set<std::string>{"optimizer.lr"});
  EXPECT_EQ(Parsed(kConstant).WithRecipe({{"optimizer.lr", 1}}).text(), kConstant);
}

// A number from the recipe counts as one that is written: positive ones keep octaves.
TEST(Recipe, KeepsTheUnitOfItsMargin) {
  const TestRun run = TestRun(1).With("grad_norm", {0.25});
  const Reading reading = Parsed("grad_norm[0] <= recipe(optimizer.clip_norm)")
                              .WithRecipe({{"optimizer.clip_norm", 1}})
                              .Evaluate({&run.trace(), {}}, testing::TestTarget());
  ASSERT_TRUE(reading.margins[static_cast<int>(Unit::kOctave)]);
  EXPECT_EQ(reading.margins[static_cast<int>(Unit::kOctave)]->lo, 2);
}

// A formula may have the program's own name of a signal that has a role.
TEST(Roles, StandInPlaceOfTheProgramsOwnNames) {
  TargetDescription target = testing::TestTarget();
  for (SignalInfo& signal : target.signals) {
    if (signal.name == "grad_norm") signal.own_name = "gnorm";
  }
  const TestRun run = TestRun(1).With("grad_norm", {0.25});
  constexpr char kText[] = "gnorm[0] <= recipe(optimizer.clip_norm)";
  const Formula formula = Parsed(kText).WithRoles(target);
  EXPECT_EQ(formula.text(), kText);
  EXPECT_EQ(formula.signals(), std::vector<std::string>{"grad_norm"});
  const Formula filled = formula.WithRecipe({{"optimizer.clip_norm", 1}});
  EXPECT_EQ(filled.Evaluate({&run.trace(), {}}, target).truth, Truth::kTrue);
  EXPECT_EQ(Parsed("gnorm[0] <= 1").Evaluate({&run.trace(), {}}, target).truth, Truth::kUnknown)
      << "no trace has the own name";
  // What a program of level 1 is asked for, it knows by its own name.
  EXPECT_EQ(Parsed("always grad_norm{a.*} < 1 and loss < 1").asked(target),
            (std::vector<std::string>{"grad_norm{a.*}", "loss", "gnorm{a.*}"}));
}

TEST(Recipe, StandsInNoOtherCheck) {
  EXPECT_EQ(testing::Errors("always lr <= recipe(optimizer.lr)", testing::TestVocabulary(3)),
            "13-33: recipe() stands in invariants only (write the number, or see "
            "docs/guide/invariants.md)\n");
  EXPECT_EQ(testing::Errors("always lr <= recipe(3)", testing::TestVocabulary(3)),
            "20-21: '3' where a key of the recipe, such as optimizer.lr is expected\n");
  EXPECT_EQ(testing::Errors("always lr <= recipe()", testing::TestVocabulary(3)),
            "20-21: ')' where a key of the recipe, such as optimizer.lr is expected\n");
}

TEST(Step, IsTheOneThatItIsReadAt) {
  const TestRun ramp = TestRun(4).With("lr", {0, 0.5, 1, 1.5});
  EXPECT_EQ(Read("always step() == 2 * lr", ramp).truth, Truth::kTrue);
  EXPECT_EQ(Read("always abs(lr - 0.5 * step()) <= 1e-12", ramp).truth, Truth::kTrue);
  EXPECT_EQ(Read("always[2:] (step() < 3 implies lr < 1.2)", ramp).truth, Truth::kTrue);
  EXPECT_EQ(Read("always abs(lr - 0.4 * step()) <= 0.25", ramp).step, 3);
  EXPECT_EQ(testing::Errors("step() < 3", testing::TestVocabulary(4)),
            "0-6: step() is a number at a step; say at which (say always, eventually or "
            "at_end)\n");
  EXPECT_EQ(testing::Errors("always step(3) < 3", testing::TestVocabulary(4)),
            "12-13: step takes nothing\n");
}

TEST(Total, AddsUpTheRanks) {
  const TestRun run = TestRun(2, /*world_size=*/2).With("tokens", {3, 4}).With("tokens", {5, 4}, 1);
  EXPECT_EQ(Read("always total(tokens) == 8", run).truth, Truth::kTrue);
  EXPECT_EQ(Read("total(tokens[1]) == 9", run).truth, Truth::kFalse);
  const TestRun lacking =
      TestRun(2, /*world_size=*/2).With("tokens", {3, 4}).With("tokens", {5, kMissing}, 1);
  EXPECT_EQ(Read("always total(tokens) == 8", lacking).truth, Truth::kUnknown);
  EXPECT_EQ(Read("always total(tokens) == 9", lacking).truth, Truth::kFalse);
}

// Ranks that a run no longer has, or not yet, lack nothing.
TEST(Total, IsOfTheRanksThatThereWere) {
  TestRun run = TestRun(4, /*world_size=*/2)
                    .With("tokens", {3, 3, 8, 8})
                    .With("tokens", {5, 5}, 1)
                    .With("eval_loss", {kMissing, 2, kMissing, 5})
                    .With("eval_loss", {kMissing, 3}, 1);
  EXPECT_EQ(Read("always total(tokens) == 8", run).truth, Truth::kUnknown);
  run.trace().worlds = {{0, 2}, {2, 1}};
  EXPECT_EQ(Read("always total(tokens) == 8", run).truth, Truth::kTrue);
  EXPECT_EQ(Read("always total(tokens) == 9", run).truth, Truth::kFalse);
  EXPECT_EQ(Read("always total(eval_loss) == 5", run).truth, Truth::kTrue);
  EXPECT_EQ(Read("always[2:] spread(tokens) == 0", run).truth, Truth::kTrue);
  EXPECT_EQ(Read("eventually spread(tokens) == 2", run).truth, Truth::kTrue);
  run.trace().worlds = {{0, 2}, {3, 1}};
  EXPECT_EQ(Read("always total(tokens) == 8", run).truth, Truth::kUnknown);
}

// A step at which a rank has no sample of a sparse signal is left out.
TEST(Total, LeavesOutWhatIsSparse) {
  const TestRun run = TestRun(3, /*world_size=*/2)
                          .With("eval_loss", {kMissing, 2, kMissing})
                          .With("eval_loss", {kMissing, 3, 9}, 1)
                          .With("loss", {1, 1, 1})
                          .With("loss", {1, 1, 1}, 1);
  EXPECT_EQ(Read("always abs(total(eval_loss) - 5) <= 0", run).truth, Truth::kTrue);
}

TEST(Functions, AreThoseOfMathematics) {
  const TestRun run = TestRun(2).With("loss", {std::exp(2.0), 4});
  for (const char* text :
       {"abs(log(loss[0]) - 2) <= 1e-12", "abs(sqrt(loss[1]) - 2) <= 1e-12",
        "abs(cos(loss[1]) + 0.6536436208636119) <= 1e-12", "log(loss[1]) > log(3.9)"}) {
    EXPECT_EQ(Read(text, run).truth, Truth::kTrue) << text;
  }
  EXPECT_EQ(Read("log(loss[1]) > log(4.1)", run).truth, Truth::kFalse);
  EXPECT_EQ(Read("sqrt(loss[1]) <= 4", run).main_unit, Unit::kOctave);
}

// Where the argument is no number, or out of range, only the function's own range is known.
TEST(Functions, OfTheUnknownAreUnknown) {
  const TestRun run = TestRun(2).With("lr", {-1, kNan});
  EXPECT_EQ(Read("log(lr[0]) < 1", run).truth, Truth::kUnknown);
  EXPECT_EQ(Read("sqrt(lr[0]) < 1", run).truth, Truth::kUnknown);
  EXPECT_EQ(Read("cos(lr[1]) < 0.5", run).truth, Truth::kUnknown);
  EXPECT_EQ(Read("cos(lr[1]) <= 1.5", run).truth, Truth::kTrue);
}

}  // namespace recipe_test
}  // namespace trainwreck::formula
