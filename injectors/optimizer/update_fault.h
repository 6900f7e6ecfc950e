// Faults of the update: what stands between the gradients, as they are after clipping, and the
// parameters.
#pragma once

#include <memory>
#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"

namespace trainwreck {

class UpdateFault : public Injector {
 public:
  using Injector::Injector;
  using Injector::Wrap;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override {
    return std::make_unique<Updating>(std::move(optimizer), *this);
  }

 protected:
  // Is called for each update, and makes it: `optimizer.Step(lr)`, with what the fault adds.
  virtual void Update(Optimizer& optimizer, double lr) = 0;

  NamedTensors parameters() const { return ParametersOf(*model_); }

 private:
  class Updating : public OptimizerAround {
   public:
    Updating(std::unique_ptr<Optimizer> inner, UpdateFault& fault)
        : OptimizerAround(std::move(inner)), fault_(fault) {}
    void Step(double lr) override { fault_.Update(inner(), lr); }

   private:
    UpdateFault& fault_;
  };

  std::shared_ptr<Model> model_;
};

}  // namespace trainwreck
