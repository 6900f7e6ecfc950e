// data.repeat_batches: each batch several times, one after the other. No bug of anybody: micro-
// batches that are all the same have the mean that one of them has.
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.repeat_batches",
          .doc =
              "Gives each batch several times: with as many micro-batches in a step, the mean over "
              "them is that of one.",
          .params = {{.name = "times",
                      .type = ValueType::kInt,
                      .default_value = 2,
                      .min = 2,
                      .unit = "times",
                      .doc = "How often each batch comes."}},
          .has_trigger = false,
          .evidence = "once: how often the first batch comes, before and after"};
}

class RepeatBatches : public Injector {
 public:
  using Injector::Injector;
  std::unique_ptr<Sampler> Wrap(std::unique_ptr<Sampler> sampler) override;

  std::int64_t times() const { return param("times").get<std::int64_t>(); }
};

class Repeating : public Sampler {
 public:
  Repeating(std::unique_ptr<Sampler> inner, RepeatBatches& owner)
      : inner_(std::move(inner)), owner_(owner) {}

  std::vector<std::int64_t> Next() override {
    if (left_ > 0) {
      --left_;
      return batch_;
    }
    batch_ = inner_->Next();
    if (batch_.empty()) return batch_;  // the epoch is over
    left_ = owner_.times() - 1;
    if (!std::exchange(fired_, true)) owner_.Fired({{"before", 1}, {"after", owner_.times()}});
    return batch_;
  }
  bool is_shadow() const override { return inner_->is_shadow(); }
  std::int64_t epoch() const override { return inner_->epoch(); }
  void Save(StateDict& state) const override { inner_->Save(state); }
  void Load(const StateDict& state) override { inner_->Load(state); }

 private:
  std::unique_ptr<Sampler> inner_;
  RepeatBatches& owner_;
  std::vector<std::int64_t> batch_;
  std::int64_t left_ = 0;
  bool fired_ = false;
};

std::unique_ptr<Sampler> RepeatBatches::Wrap(std::unique_ptr<Sampler> sampler) {
  return std::make_unique<Repeating>(std::move(sampler), *this);
}

REGISTER_FAULT(Info, RepeatBatches);

}  // namespace
}  // namespace trainwreck
