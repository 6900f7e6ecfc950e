// A model for tests: one attention over inputs that the test gives.
#pragma once

#include <memory>

#include "injectors/testing.h"
#include "trainer/models/layers.h"

namespace trainwreck {

class OneAttention : public Model {
 public:
  explicit OneAttention(AttentionForm form)
      : mix(register_module("mix", std::make_shared<CausalAttention>(form))) {}
  at::Tensor Loss(const Batch& batch) override {
    return mix->Forward(batch.inputs, batch.inputs, batch.inputs).sum();
  }
  std::shared_ptr<CausalAttention> mix;
};

// Such a model with `fault` in it.
inline std::shared_ptr<OneAttention> AttentionWith(FaultBench& bench, const std::string& fault,
                                                   AttentionForm form,
                                                   std::map<std::string, Json> with = {}) {
  auto model = std::make_shared<OneAttention>(form);
  const auto injector = bench.Make(fault, std::move(with));
  EXPECT_EQ(static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model)), model);
  return model;
}

}  // namespace trainwreck
