#include "harness/formula/random_formula.h"

#include <algorithm>

namespace trainwreck::formula::testing {
namespace {

std::string Number(Tape& tape) {
  static const char* const numbers[] = {"1", "2", "4", "0.5", "3", "8"};
  return numbers[tape.Pick(6)];
}

std::string SliceText(Tape& tape, int steps) {
  const int from = tape.Pick(steps);
  const int to = from + 1 + tape.Pick(steps - from);
  return "[" + std::to_string(from) + ":" + std::to_string(to) + "]";
}

std::string Op(Tape& tape) {
  static const char* const ops[] = {"<", ">", "<=", ">="};
  return std::string(" ") + ops[tape.Pick(4)] + " ";
}

std::string SlicedNumber(Tape& tape, int steps, const FormulaKinds& kinds) {
  static const char* const functions[] = {"mean", "median", "sum", "max",  "min",
                                          "last", "first",  "std", "slope"};
  static const char* const signals[] = {"loss", "lr", "grad_norm"};
  const std::string function = functions[tape.Pick(kinds.everything ? 9 : 3)];
  return function + "(" + signals[tape.Pick(3)] + SliceText(tape, steps) + ")";
}

std::string RisingAtom(Tape& tape) {
  return (tape.Pick(2) == 0 ? "lr > " : "lr >= ") + Number(tape);
}

std::string SparseAtom(Tape& tape) {
  switch (tape.Pick(4)) {
    case 0:
      return "eval_loss" + Op(tape) + Number(tape);
    case 1:
      return "eval_loss" + Op(tape) + "loss";
    case 2:
      return "lr" + Op(tape) + Number(tape) + " * eval_loss";
    default:
      return "nonfinite(eval_loss)";
  }
}

std::string EqualityAtom(Tape& tape) {
  static const char* const signals[] = {"skipped", "lr", "loss"};
  const std::string signal = signals[tape.Pick(4) % 3];
  return signal + (tape.Pick(3) == 0 ? " != " : " == ") + std::to_string(tape.Pick(3));
}

std::string InnerAtom(Tape& tape, int steps, const FormulaKinds& kinds) {
  if (kinds.rising) return RisingAtom(tape);
  if (kinds.sparse && tape.Pick(5) == 4) return SparseAtom(tape);
  switch (tape.Pick(kinds.everything ? 12 : 9)) {
    case 0:
      return "loss" + Op(tape) + Number(tape);
    case 1:
      return "lr" + Op(tape) + Number(tape);
    case 2:
      return "nonfinite(loss)";
    case 3:
      return "fired";
    case 4:
      return "loss" + Op(tape) + Number(tape) + " * " + SlicedNumber(tape, steps, kinds);
    case 5:
      return EqualityAtom(tape);
    case 6:
      return "spike(grad_norm, ratio=" + Number(tape) +
             ", window=" + std::to_string(1 + tape.Pick(3)) + ")";
    case 7: {
      const int window = std::min(3 + tape.Pick(3), steps);
      return "oscillates(lr, window=" + std::to_string(window) + ", crossings=1)";
    }
    case 8:
      return "lr + loss" + Op(tape) + Number(tape);
    case 9:
      return "plateau(loss, window=" + std::to_string(2 + tape.Pick(2)) + ", tolerance=0.5)";
    case 10:
      return "abs(lr - loss)" + Op(tape) + Number(tape);
    default:
      return "loss / lr" + Op(tape) + Number(tape);
  }
}

std::string TopAtom(Tape& tape, int steps, const FormulaKinds& kinds) {
  if (kinds.rising) {
    static const char* const functions[] = {"max", "min", "mean", "median"};
    return functions[tape.Pick(4)] + std::string("(lr") + SliceText(tape, steps) + ") > " +
           Number(tape);
  }
  switch (tape.Pick(3)) {
    case 0:
      return SlicedNumber(tape, steps, kinds) + Op(tape) + Number(tape);
    case 1:
      return SlicedNumber(tape, steps, kinds) + Op(tape) + Number(tape) + " * " +
             SlicedNumber(tape, steps, kinds);
    default:
      return "restarted";
  }
}

// once and historically stand inside another operator only.
std::string PastText(Tape& tape, int steps) {
  const std::string word = tape.Pick(2) == 0 ? "once" : "historically";
  return word + RandomWindow(tape, steps);
}

// The connectives, the same inside and outside of temporal operators.
template <typename Next>
std::string Joined(Tape& tape, const FormulaKinds& kinds, Next next) {
  const int choice = tape.Pick(kinds.rising ? 2 : 4);
  if (choice == 3) return "not (" + next() + ")";
  static const char* const words[] = {") and (", ") or (", ") implies ("};
  const std::string left = next();
  return "(" + left + words[choice] + next() + ")";
}

std::string Temporal(Tape& tape, int steps, int depth, const FormulaKinds& kinds) {
  FormulaKinds below = kinds;
  below.sparse = !kinds.rising;
  auto inner = [&] { return "(" + RandomInnerFormula(tape, steps, depth, below) + ")"; };
  static const char* const prefixes[] = {"always", "eventually", "at_end", "never"};
  const int choice = tape.Pick(kinds.rising ? 4 : 6);
  below.sparse = below.sparse && choice != 3 && choice != 4;
  if (choice == 3) {
    const std::string left = inner(), window = RandomWindow(tape, steps);
    return left + " until" + window + " " + inner();
  }
  if (choice == 4) {
    const std::string left = inner(), window = RandomWindow(tape, steps);
    return left + " precedes" + window + " " + inner();
  }
  const int prefix = choice == 5 ? 3 : choice;
  const std::string window = prefix == 2 ? "" : RandomWindow(tape, steps);
  return prefixes[prefix] + window + " " + inner();
}

}  // namespace

std::string RandomWindow(Tape& tape, int steps) {
  const int from = tape.Pick(steps);
  switch (tape.Pick(4)) {
    case 0:
      return "";
    case 1:
      return "[" + std::to_string(from) + ":]";
    case 2:
      return "[:" + std::to_string(from) + "]";
    default:
      return "[" + std::to_string(from) + ":" + std::to_string(from + tape.Pick(steps - from)) +
             "]";
  }
}

std::string RandomInnerFormula(Tape& tape, int steps, int depth, const FormulaKinds& kinds) {
  auto next = [&] { return RandomInnerFormula(tape, steps, depth - 1, kinds); };
  const int choice = depth <= 0 ? 0 : tape.Pick(4);
  if (choice <= 1) return InnerAtom(tape, steps, kinds);
  if (choice == 2) return Joined(tape, kinds, next);
  const int outer = tape.Pick(5);
  if (outer == 4) {
    FormulaKinds below = kinds;
    below.sparse = !kinds.rising;
    return PastText(tape, steps) + " (" + RandomInnerFormula(tape, steps, depth - 1, below) + ")";
  }
  if (outer == 3) {
    FormulaKinds below = kinds;
    below.sparse = false;  // holds reads every step
    const std::string inner = RandomInnerFormula(tape, steps, depth - 1, below);
    return "holds(" + inner + ", for=" + std::to_string(1 + tape.Pick(std::min(steps, 3))) + ")";
  }
  return Temporal(tape, steps, depth - 1, kinds);
}

std::string RandomFormula(Tape& tape, int steps, const FormulaKinds& kinds) {
  auto part = [&] {
    return tape.Pick(4) == 3 ? TopAtom(tape, steps, kinds) : Temporal(tape, steps, 2, kinds);
  };
  return tape.Pick(3) == 2 ? Joined(tape, kinds, part) : part();
}

TestRun RandomRun(Tape& tape, int steps) {
  TestRun run(steps);
  const int length = tape.Pick(4) == 3 ? tape.Pick(steps + 1) : steps;
  static const double values[] = {1, 2, 4, 8, 0.5, 3, kNan, kInf, kMissing};
  for (const char* signal : {"loss", "grad_norm", "lr"}) {
    const int kinds = tape.Pick(2) == 0 ? 6 : 9;  // half of the signals are whole
    for (int step = 0; step < length; ++step) {
      const double value = values[tape.Pick(kinds)];
      if (value != kMissing) run.At(signal, step, value);
    }
  }
  const int every = 1 + tape.Pick(4);
  for (int step = tape.Pick(3); step < length; step += every) {
    run.At("eval_loss", step, values[tape.Pick(8)]);
  }
  for (int step = 0; step < length; ++step) run.At("skipped", step, tape.Pick(3) == 2 ? 1 : 0);
  for (int count = tape.Pick(3); count > 0; --count) {
    run.Happened(tape.Pick(3) == 2 ? "restarted" : "fired", tape.Pick(steps));
  }
  return run;
}

}  // namespace trainwreck::formula::testing
