// The variants and the clues of a checkup. Variants are changed runs of a recipe: a lower rate,
// clipping, fp32, two examples, one batch, a guard before the data. Every recipe is also run again
// as it is; one of several phases, without the interruption; one of several ranks, on one. Clues
// are formulas that are read in each of them: the suite's symptoms that need no healthy run to
// compare with, and general questions that fit any recipe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/campaign/batches.h"
#include "harness/matrix/diagnosis.h"
#include "harness/matrix/matrix.h"
#include "harness/plan/run.h"

namespace trainwreck {

inline constexpr const char* kGiven = "given";  // the variant that changes nothing
// A run of several phases in one; the symptoms' `reference`.
inline constexpr const char* kUninterrupted = "uninterrupted";

// What a variant is about. Those of training are for runs of one rank and one phase: several ranks
// and phases add ways to fail that no rate or precision cures.
enum class About { kGiven, kTraining, kRepetition, kInterruption, kRanks };

struct Variant {
  std::string name;
  std::string what;  // "LR / 10"
  Changes changes;   // of this recipe
  About about = About::kTraining;
  bool is_possible = true;  // the target has the keys
};

// The variants of a recipe: always the same ones in the same order, kGiven first.
std::vector<Variant> VariantsOf(const Recipe& recipe, const TargetDescription& target);

// The ways to fail that the given run has; other runs have only some of them.
Reach ReachOf(const Run& given);

class ClueSet {
 public:
  ClueSet(const std::vector<SuiteSymptom>& symptoms, const TargetDescription& target);

  std::size_t size() const { return variants_.size() * clues_per_variant(); }
  // For a run of so many steps: "LR / 10: never nonfinite(loss)".
  std::string TextOf(int clue, int steps) const;
  std::string digest() const;

  // The runs of a seed and its variants. A variant that does not change the recipe, and is no
  // repetition, is not run.
  Batch RunsFor(const Run& given) const;
  // All clues over these runs; a clue whose run is missing, or that does not fit, is unknown.
  ClueReadings Read(const Run& given, const BatchResults& results) const;

 private:
  std::size_t clues_per_variant() const { return questions(1).size() + symptoms_.size(); }
  // The general ones: their slices depend on the length of the run.
  static std::vector<std::string> questions(int steps);
  std::vector<formula::Formula> FormulasFor(int steps) const;

  const TargetDescription& target_;
  std::vector<Variant> variants_;  // of the target's defaults: names and texts
  std::vector<formula::Formula> symptoms_;
};

// "optimizer.lr x 0.1, optimizer.clip_norm = 1"
std::string TextOf(const Changes& changes);

}  // namespace trainwreck
