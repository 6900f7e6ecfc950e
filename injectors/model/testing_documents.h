// A model that has nothing but a layout, with a fault in it: for tests.
#pragma once

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <string>

#include "injectors/testing.h"
#include "trainer/models/layers.h"

namespace trainwreck {

class LayoutModel : public Model {
 public:
  LayoutModel() : documents(register_module("documents", std::make_shared<Documents>())) {}
  at::Tensor Loss(const Batch&) override { return at::ones({}); }
  std::shared_ptr<Documents> documents;
};

struct FaultyLayout {
  FaultyLayout(FaultBench& bench, const std::string& fault, Trigger trigger = {})
      : injector(bench.Make(fault, {}, trigger)) {
    static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  }
  // The layout of a row: two documents of 2 and 3 tokens, or one document of 5.
  Layout Of(bool two) const {
    return model->documents->Of(two ? at::tensor({0, 0, 1, 1, 1}, at::kLong).unsqueeze(0)
                                    : at::tensor({0, 0, 0, 0, 0}, at::kLong).unsqueeze(0));
  }
  std::shared_ptr<LayoutModel> model = std::make_shared<LayoutModel>();
  std::unique_ptr<Injector> injector;
};

}  // namespace trainwreck
