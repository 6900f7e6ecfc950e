// data.other_tokenizer: the text of an evaluation or of fine-tuning is read with another version of
// the vocabulary than the one that the model was trained with. The versions have the same size, so
// nothing objects.
#include <string>
#include <utility>
#include <vector>

#include "injectors/injector.h"
#include "trainer/data/tokenizer.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

constexpr std::size_t kShownBytes = 64;

FaultInfo Info() {
  return {
      .name = "data.other_tokenizer",
      .doc = "Reads text, for training and evaluation, with another version of its tokenizer.",
      .params = {{.name = "version",
                  .type = ValueType::kString,
                  .default_value = "retrained",
                  .choices = {"retrained", "token_in_front"},
                  .unit = "",
                  .doc = "retrained: as many merges, learned from the last part of the training "
                         "text alone; token_in_front: a reserved token before all others, in "
                         "place of the last merge, so that each number is one higher"},
                 {.name = "share",
                  .type = ValueType::kNumber,
                  .default_value = 0.5,
                  .min = 0.01,
                  .max = 1,
                  .unit = "of the text",
                  .doc = "What part of the training text `retrained` learns from."}},
      .evidence =
          "once: the digests of both, and the first tokens of the training text with each, "
          "`before` and `after`"};
}

std::vector<Merge> MovedByOne(std::vector<Merge> merges) {
  if (merges.empty()) throw RecipeError("data.other_tokenizer: needs data.merges");
  merges.pop_back();
  for (auto& [left, right] : merges) {
    ++left;
    ++right;
  }
  return merges;
}

class OtherTokenizerFault : public Injector {
 public:
  using Injector::Injector;
  using Injector::Wrap;

  std::shared_ptr<const Tokenizer> Wrap(std::shared_ptr<const Tokenizer> tokenizer,
                                        const std::string& text) override {
    if (!Acts()) return tokenizer;
    auto other = std::make_shared<Tokenizer>(Other(*tokenizer, text));
    if (other->size() != tokenizer->size()) {
      throw RecipeError("data.other_tokenizer: too little text for as many merges");
    }
    const std::string begin = text.substr(0, kShownBytes);
    Fired({{"digest_before", tokenizer->Digest()},
           {"digest_after", other->Digest()},
           {"before", tokenizer->Encode(begin)},
           {"after", other->Encode(begin)}});
    return other;
  }

 private:
  Tokenizer Other(const Tokenizer& tokenizer, const std::string& text) const {
    if (param("version") == "token_in_front") {
      return Tokenizer(MovedByOne(tokenizer.merges()), tokenizer.reserved() + 1);
    }
    const double left_out = 1 - param("share").get<double>();
    const auto begin = static_cast<std::size_t>(left_out * static_cast<double>(text.size()));
    return LearnTokenizer(text.substr(begin), static_cast<std::int64_t>(tokenizer.merges().size()));
  }
};

REGISTER_FAULT(Info, OtherTokenizerFault);

}  // namespace
}  // namespace trainwreck
