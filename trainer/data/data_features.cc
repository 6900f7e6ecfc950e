#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <numbers>

#include "trainer/data/data.h"
#include "trainer/devices/rng.h"

namespace trainwreck {
namespace {

constexpr std::uint64_t kCentreSeed = 0x63656e747265;

std::uint64_t OfSource(std::uint64_t seed, std::int64_t source) {
  return source == 0 ? seed : MixSeed(seed, static_cast<std::uint64_t>(source));
}

// Box and Muller 1958, two at a time.
template <typename Emit>
void DrawNormals(SplitMix64& random, std::int64_t count, const Emit& emit) {
  for (std::int64_t i = 0; i < count; i += 2) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - random.Uniform()));
    const double angle = 2.0 * std::numbers::pi * random.Uniform();
    emit(i, radius * std::cos(angle));
    if (i + 1 < count) emit(i + 1, radius * std::sin(angle));
  }
}

class FeatureData : public Dataset {
 public:
  FeatureData(std::int64_t features, std::int64_t classes, double noise, SampleStream stream,
              std::int64_t source)
      : features_(features),
        classes_(classes),
        noise_(noise),
        scale_(1.0 / std::sqrt(1.0 + noise * noise)),
        stream_(stream),
        stream_seed_(OfSource(MixSeed(stream.seed, stream.held_out ? 2 : 1), source)),
        centres_(static_cast<std::size_t>(features * classes)),
        weight_(at::ones({})) {
    SplitMix64 random(OfSource(kCentreSeed, source));
    DrawNormals(random, features * classes,
                [&](std::int64_t i, double value) { centres_[i] = value; });
  }

  std::int64_t size() const override { return stream_.samples; }
  std::int64_t input_limit() const override { return 0; }
  std::int64_t target_limit() const override { return classes_; }

  Sample Get(std::int64_t id) const override {
    SplitMix64 random(MixSeed(stream_seed_, static_cast<std::uint64_t>(id)));
    const auto label =
        static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(classes_)));
    at::Tensor input = at::empty({features_});
    auto* data = input.mutable_data_ptr<float>();
    const double* centre = centres_.data() + label * features_;
    DrawNormals(random, features_, [&](std::int64_t i, double value) {
      data[i] = static_cast<float>((centre[i] + noise_ * value) * scale_);
    });
    return {id, input, at::scalar_tensor(label, at::kLong), weight_};
  }

 private:
  std::int64_t features_, classes_;
  double noise_;
  double scale_;
  SampleStream stream_;
  std::uint64_t stream_seed_;
  std::vector<double> centres_;
  at::Tensor weight_;
};

}  // namespace

std::unique_ptr<Dataset> MakeFeatureData(std::int64_t features, std::int64_t classes, double noise,
                                         SampleStream stream, std::int64_t source) {
  return std::make_unique<FeatureData>(features, classes, noise, stream, source);
}

}  // namespace trainwreck
