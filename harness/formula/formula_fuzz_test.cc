// Mutated formulas through parser, checker, printer and evaluator: the same ones on every run.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/formula/fuzz_target.h"

namespace trainwreck::formula {
namespace {

constexpr int kInputs = 100'000;

const std::vector<std::string>& Seeds() {
  static const std::vector<std::string> seeds = {
      "eventually[:6] nonfinite(loss)",
      "spike(grad_norm, ratio=4, window=8) precedes[1:5] nonfinite(loss)",
      "mean(loss[-3:]) <= 1.25 * control.mean(loss[-3:])",
      "always[1:] updated{head.*} == 0",
      "eventually stalled(waiting_rank=0)",
      "fired(hot_lr) and not exited(rank=1, signal=9)",
      "event(sample_rejected, sample=17, why=\"not finite\")",
      "all_ranks(always[2:7] loss < 3) or any_rank(at_end lr >= 1e-3)",
      "always spread(loss) < 1e-6 implies last(eval_loss[:]) < 3",
      "eventually[1s:5s] stalled or fired precedes[:5s] stalled",
      "always (loss < 3 implies eventually[0:4] holds(lr > 1, for=2))",
      "eventually plateau(loss, window=4, tolerance=0.1)",
      "eventually oscillates(lr, window=5, crossings=1)",
      "overlap(param_digest[5:], sample_digest[:5]) == 0 and count(skipped[:]) >= 3",
      "any_module(always update_norm{*} > 0.1 * param_norm{*})",
      "loss < 3 until[1:4] (lr > 2 and abs(loss - reference.loss) > 0)",
      "never[3:] -loss@1 + 2 / lr * (loss - 1) > max(lr[2:9])",
  };
  return seeds;
}

const std::vector<std::string>& Pieces() {
  static const std::vector<std::string> pieces = {"always",      "eventually[:3]",
                                                  "never",       "at_end ",
                                                  "not ",        " and ",
                                                  " or ",        " implies ",
                                                  " until ",     " precedes[2:] ",
                                                  "(",           ")",
                                                  "[",           "]",
                                                  ":",           "-",
                                                  "{*}",         "@1",
                                                  "[-1]",        "[2:5]",
                                                  "loss",        "fired",
                                                  "1e9",         "1e308",
                                                  "0",           "999999999",
                                                  "5s",          " == ",
                                                  " < ",         "control.",
                                                  "mean(",       "all_ranks(",
                                                  "\"",          "'",
                                                  "\xff",        std::string(1, '\0'),
                                                  "any_module(", "holds(",
                                                  ", for=2)",    "inf",
                                                  "-1",          ".5",
                                                  "[0:0]",       "[:1e9]",
                                                  "[5s:]",       "spread("};
  return pieces;
}

std::string Mutated(std::mt19937& random) {
  auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  std::string text = Seeds()[pick(Seeds().size())];
  for (std::size_t changes = 1 + pick(4); changes > 0; --changes) {
    const std::size_t at = pick(text.size() + 1);
    switch (pick(7)) {
      case 0:
        text.insert(at, 1, static_cast<char>(random()));
        break;
      case 1:
        text.erase(at, 1 + pick(6));
        break;
      case 2:
        text.insert(at, Pieces()[pick(Pieces().size())]);
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << pick(8)));
        break;
      case 4: {  // a part of another formula
        const std::string& other = Seeds()[pick(Seeds().size())];
        const std::size_t from = pick(other.size());
        text.insert(at, other.substr(from, pick(other.size() - from + 1)));
        break;
      }
      case 5: {  // a part again and again
        const std::string part = text.substr(at, 1 + pick(12));
        for (std::size_t times = pick(30); times > 0; --times) text.insert(at, part);
        break;
      }
      default:
        text = "(" + text + (pick(2) == 0 ? ") and (" : ") until[1:3] (") +
               Seeds()[pick(Seeds().size())] + ")";
    }
  }
  return text;
}

TEST(Fuzz, MutatedFormulasBreakNoPromise) {
  std::mt19937 random(20240229);
  int parsed = 0;
  for (int i = 0; i < kInputs; ++i) {
    const std::string text = Mutated(random);
    testing::FuzzOne(text);
    if (i % 64 == 0) parsed += Formula::Parse(text).formula ? 1 : 0;
  }
  // Mutations that never parse would test the lexer alone.
  EXPECT_GT(parsed, kInputs / 64 / 20);
}

TEST(Fuzz, SeedsThemselvesBreakNoPromise) {
  for (const std::string& seed : Seeds()) {
    EXPECT_TRUE(Formula::Parse(seed).formula) << seed;
    testing::FuzzOne(seed);
  }
}

}  // namespace
}  // namespace trainwreck::formula
