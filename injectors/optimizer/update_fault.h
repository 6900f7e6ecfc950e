// Faults of the update: of the step from the gradients, after clipping, to the parameters.
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
  // Makes the update: `optimizer.Step(lr)`, with the change of the fault. Called for each update.
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
