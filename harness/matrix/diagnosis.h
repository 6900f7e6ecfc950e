// Tells which of the known faults a run looks like. Clues are formulas that were read in runs of
// known faults and of healthy recipes. The same clues are read in the unknown run and compared with
// each of them (naive Bayes with rates that are drawn to the mean).
//
//   Diagnosis diagnosis(signatures);
//   std::vector<Likeness> ranked = diagnosis.Rank(readings);
//
// A clue that cannot be read counts as nothing, so that signals which a model lacks do not reveal
// the model. Clues depend on each other, so the bits give an order of the rows, but no true odds.
#pragma once

#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/matrix/matrix.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// Ways to fail that not every run has.
struct Reach {
  bool ranks = false;   // several ranks
  bool phases = false;  // several phases: it is interrupted and resumes
  bool Covers(const Reach& other) const {
    return (ranks || !other.ranks) && (phases || !other.phases);
  }
};

// How often each clue held in runs whose fault is known.
struct Signature {
  std::string name;           // of the case
  std::string row;            // the scenario; empty: runs without a fault
  Reach reach;                // of its runs
  std::vector<Count> counts;  // by clue
};

Json ToJson(const Signature& signature);
Signature SignatureFromJson(const Json& json);  // throws Json::exception

using ClueReadings = std::vector<formula::Truth>;  // by clue, of one run and its variants

struct Likeness {
  std::string row;        // empty: healthy
  std::string signature;  // the case that it is most like
  // log2 of the likelihood over that of a healthy recipe, the prior included. Of the healthy one:
  // the bits that a fault needs to stand before it.
  double bits = 0;
};

// A clue that speaks for a row.
struct ClueEvidence {
  int clue = 0;
  bool holds = false;  // as it was read
  double in_row = 0;   // the share of its runs in which it reads so
  double overall = 0;  // the same over all signatures, each with the same weight
};

class Diagnosis {
 public:
  // All signatures have the same clues, and at least one is of healthy runs. Clues depend on each
  // other, so the bits of an alarm are many: see alarm_bits.
  explicit Diagnosis(std::vector<Signature> signatures, double alarm_bits = 0);

  // All rows that a run of this reach can have, and the healthy one, by likeness.
  // `readings`: one entry a seed. The signatures of the case `left_out` are not used, to measure
  // how unknown recipes are diagnosed: those of its healthy runs, or also those with its fault.
  enum class LeaveOut { kHealthy, kAll };
  std::vector<Likeness> Rank(const std::vector<ClueReadings>& readings, const Reach& reach = {},
                             const std::string& left_out = "",
                             LeaveOut how = LeaveOut::kHealthy) const;

  // The clues that speak most for this signature of a row, at most `limit`.
  std::vector<ClueEvidence> EvidenceFor(const Likeness& likeness,
                                        const std::vector<ClueReadings>& readings,
                                        std::size_t limit) const;

 private:
  double RateIn(const Signature& signature, std::size_t clue) const;
  double LogLikelihood(const Signature& signature, const std::vector<ClueReadings>& readings) const;

  std::vector<Signature> signatures_;
  double alarm_bits_;
  std::vector<double> overall_;  // by clue
};

}  // namespace trainwreck
