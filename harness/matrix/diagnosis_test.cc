#include "harness/matrix/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace trainwreck {
namespace diagnosis_test {

using formula::Truth;
constexpr Truth kYes = Truth::kTrue, kNo = Truth::kFalse, kUnknown = Truth::kUnknown;

// "+": in all of ten runs, "-": in none, "/": in half of them, "?": unknown.
Signature Make(const std::string& name, const std::string& row, const std::string& clues) {
  Signature signature{name, row, {}, {}};
  for (char clue : clues) {
    signature.counts.push_back(clue == '+'   ? Count{10, 0, 0}
                               : clue == '-' ? Count{0, 10, 0}
                               : clue == '/' ? Count{5, 5, 0}
                                             : Count{0, 0, 10});
  }
  return signature;
}

ClueReadings Read(const std::string& clues) {
  ClueReadings readings;
  for (char clue : clues) readings.push_back(clue == '+' ? kYes : clue == '-' ? kNo : kUnknown);
  return readings;
}

// Clues: not finite, spike, batch named, learns.
Diagnosis Known() {
  return Diagnosis({Make("a", "", "---+"), Make("b", "", "---+"), Make("nan/lr", "nan/lr", "++--"),
                    Make("nan/sample", "nan/sample", "+-+-"), Make("slow", "not/slow", "----")});
}

TEST(Diagnosis, NamesTheRowThatReadsAlike) {
  EXPECT_EQ(Known().Rank({Read("++--")}).front().row, "nan/lr");
  EXPECT_EQ(Known().Rank({Read("+-+-")}).front().row, "nan/sample");
  EXPECT_EQ(Known().Rank({Read("----")}).front().row, "not/slow");
  const std::vector<Likeness> healthy = Known().Rank({Read("---+")});
  EXPECT_EQ(healthy.front().row, "");
  EXPECT_EQ(healthy.front().bits, 0);
  EXPECT_LT(healthy[1].bits, 0);
}

TEST(Diagnosis, AnAlarmNeedsItsBits) {
  const std::vector<Signature> signatures = {Make("a", "", "---+"), Make("x", "x", "++--")};
  const double bits = Diagnosis(signatures).Rank({Read("++--")}).front().bits;
  EXPECT_EQ(Diagnosis(signatures, bits - 0.1).Rank({Read("++--")}).front().row, "x");
  const auto healthy = Diagnosis(signatures, bits + 0.1).Rank({Read("++--")});
  EXPECT_EQ(healthy.front().row, "");
  EXPECT_EQ(healthy[1].bits, bits) << "it is still told what it is like";
}

TEST(Diagnosis, WhatCannotBeReadSaysNothing) {
  const std::vector<Likeness> ranked = Known().Rank({Read("????")});
  ASSERT_EQ(ranked.size(), 4u);
  EXPECT_EQ(ranked.front().row, "") << "the prior: as likely as all rows together";
  for (std::size_t i = 1; i < ranked.size(); ++i) {
    EXPECT_NEAR(ranked[i].bits, -1.58496, 1e-4);  // one of three
  }
  // What a row's own runs could not be read for neither speaks for it nor against it.
  const Diagnosis diagnosis({Make("a", "", "-/"), Make("x", "x", "+?"), Make("y", "y", "+/")});
  const auto ranked_x = diagnosis.Rank({Read("++")});
  EXPECT_NEAR(ranked_x[0].bits, ranked_x[1].bits, 1e-9);
}

TEST(Diagnosis, MoreSeedsAreMoreEvidence) {
  const double one = Known().Rank({Read("++--")}).front().bits;
  const double two = Known().Rank({Read("++--"), Read("++--")}).front().bits;
  EXPECT_GT(two, one + 1);
}

TEST(Diagnosis, ARowIsOnItsPointsAverage) {
  const Diagnosis diagnosis({Make("a", "", "--"), Make("x[p]", "x", "+-"), Make("x[q]", "x", "-+"),
                             Make("y", "y", "/-")});
  const Likeness first = diagnosis.Rank({Read("-+")}).front();
  EXPECT_EQ(first.row, "x");
  EXPECT_EQ(first.signature, "x[q]");
}

TEST(Diagnosis, NamesOnlyFaultsThatTheRunCanHave) {
  Signature hang = Make("hang", "hang", "++"), resume = Make("resume", "resume", "++");
  hang.reach.ranks = true;
  resume.reach.phases = true;
  const Diagnosis diagnosis({Make("a", "", "--"), Make("x", "x", "+-"), hang, resume});
  const auto rows = [&](const Reach& reach) {
    std::vector<std::string> names;
    for (const Likeness& one : diagnosis.Rank({Read("++")}, reach)) names.push_back(one.row);
    std::sort(names.begin(), names.end());
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(rows({}), (Names{"", "x"}));
  EXPECT_EQ(rows({.ranks = true}), (Names{"", "hang", "x"}));
  EXPECT_EQ(rows({.phases = true}), (Names{"", "resume", "x"}));
  EXPECT_EQ(rows({.ranks = true, .phases = true}), (Names{"", "hang", "resume", "x"}));
}

TEST(Diagnosis, CanLeaveOutTheRecipesOwnHealthyRuns) {
  const Diagnosis diagnosis(
      {Make("x", "", "++"), Make("y", "", "--"), Make("x", "row", "+-"), Make("y", "other", "-+")});
  EXPECT_EQ(diagnosis.Rank({Read("++")}).front().row, "");
  EXPECT_NE(diagnosis.Rank({Read("++")}, {}, "x").front().row, "");
  EXPECT_EQ(diagnosis.Rank({Read("+-")}, {}, "x").front().row, "row");
  for (const Likeness& one : diagnosis.Rank({Read("+-")}, {}, "x", Diagnosis::LeaveOut::kAll)) {
    EXPECT_NE(one.row, "row") << "its only case is left out";
  }
}

TEST(Diagnosis, ShowsWhatSpeaksForARow) {
  const Diagnosis known = Known();
  const ClueReadings readings = Read("++--");
  const std::vector<Likeness> ranked = known.Rank({readings});
  const std::vector<ClueEvidence> evidence = known.EvidenceFor(ranked.front(), {readings}, 2);
  ASSERT_EQ(evidence.size(), 2u);
  EXPECT_EQ(evidence[0].clue, 1) << "the spike: only this row has it";
  EXPECT_TRUE(evidence[0].holds);
  EXPECT_EQ(evidence[0].in_row, 1);
  EXPECT_LT(evidence[0].overall, 0.3);
}

TEST(Diagnosis, SignaturesComeBackFromJson) {
  Signature signature = Make("x[p]", "x", "+-/?");
  signature.reach.phases = true;
  const Signature again = SignatureFromJson(ToJson(signature));
  EXPECT_EQ(again.name, "x[p]");
  EXPECT_EQ(again.row, "x");
  EXPECT_TRUE(again.reach.phases);
  EXPECT_FALSE(again.reach.ranks);
  ASSERT_EQ(again.counts.size(), 4u);
  EXPECT_EQ(again.counts[2].holds, 5);
  EXPECT_EQ(again.counts[3].known(), 0);
}

}  // namespace diagnosis_test
}  // namespace trainwreck
