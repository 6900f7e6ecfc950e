#include "injectors/corruption.h"

#include <stdexcept>

#include "trainer/recipe/recipe.h"
#include "trainer/tensor_views.h"

namespace trainwreck {
namespace {

using Kind = kernels::Corruption::Kind;

Kind KindOf(const std::string& name) {
  if (name == "flip_bit") return Kind::kFlipBit;
  if (name == "set") return Kind::kSetValue;
  if (name == "scale") return Kind::kScale;
  if (name == "noise") return Kind::kAddNoise;
  return Kind::kZero;
}

}  // namespace

std::vector<ParamInfo> CorruptionParams() {
  return {{.name = "kind",
           .type = ValueType::kString,
           .default_value = "flip_bit",
           .choices = {"flip_bit", "set", "scale", "noise", "zero"},
           .doc = "What happens to the chosen elements."},
          {.name = "elements",
           .type = ValueType::kInt,
           .default_value = 1,
           .min = 1,
           .unit = "elements",
           .doc = "How many, at places that follow from the run's seed."},
          {.name = "bit",
           .type = ValueType::kInt,
           .default_value = 22,
           .min = 0,
           .max = 31,
           .unit = "bit",
           .doc = "Which bit flips: 0 is the lowest of the mantissa; of 32 "
                  "bits 22 is its highest, 23 "
                  "to 30 are the exponent, 31 is the sign."},
          {.name = "value",
           .type = ValueType::kNumber,
           .default_value = 2.0,
           .unit = "of the tensor",
           .doc = "The value to set, the factor to scale by, or the noise's "
                  "standard deviation."}};
}

kernels::Corruption CorruptionOf(const std::function<Json(const std::string& name)>& param,
                                 std::uint64_t seed) {
  kernels::Corruption corruption;
  corruption.kind = KindOf(param("kind").get<std::string>());
  corruption.elements = param("elements").get<std::int64_t>();
  corruption.bit = param("bit").get<int>();
  corruption.value = param("value").get<double>();
  corruption.seed = seed;
  return corruption;
}

Json CorruptTensor(at::Tensor& tensor, const kernels::Corruption& corruption) {
  kernels::CorruptionReport report;
  try {
    report = Corrupt(tensor, corruption);
  } catch (const std::invalid_argument& error) {
    throw RecipeError(error.what());
  }
  Json evidence = {{"elements", report.elements}, {"changed", report.changed}};
  if (!report.shown.empty()) {
    evidence["index"] = report.shown[0].index;
    evidence["before"] = EncodeNumber(report.shown[0].before);
    evidence["after"] = EncodeNumber(report.shown[0].after);
  }
  return evidence;
}

}  // namespace trainwreck
