// Formulas and runs made from a tape of random bytes, so that shrinking the tape (RapidCheck makes
// bytes smaller and tapes shorter) makes them simpler: byte 0 always picks the simplest choice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/formula/test_support.h"

namespace trainwreck::formula::testing {

class Tape {
 public:
  explicit Tape(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  int Pick(int choices) { return at_ < bytes_.size() ? bytes_[at_++] % choices : 0; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

struct FormulaKinds {
  bool rising = false;     // only operators that keep the order, only `lr > number`
  bool everything = true;  // also parts that the naive oracle lacks
  bool sparse = true;      // with the sparse signal, where it may stand
};

// A formula about a run of `steps` steps; passes the checker.
std::string RandomFormula(Tape& tape, int steps, const FormulaKinds& kinds);

// A formula to stand inside a temporal operator.
std::string RandomInnerFormula(Tape& tape, int steps, int depth, const FormulaKinds& kinds);
std::string RandomWindow(Tape& tape, int steps);

// A finished run with loss, grad_norm, lr, skipped and, at some steps, eval_loss; some samples NaN,
// infinite or missing; it may have ended early; with events `fired` and `restarted`.
TestRun RandomRun(Tape& tape, int steps);

}  // namespace trainwreck::formula::testing
