// ZeRO, stage 3 (Rajbhandari et al. 2020): the parameters are divided among the ranks, too. Between
// uses a rank has the elements that it owns alone (division.h); the parameters keep their shapes
// and have no memory, and whoever reads them then gets a c10::Error. A section of the model
// (model.h) is gathered when its forward pass begins, and again when its backward pass begins; one
// section at a time is there. Parameters of no section are there during the whole of a pass.
//
//   DividedParameters parameters(model, division, communicator);
//   {
//     DividedParameters::Pass pass(&parameters);
//     model->Loss(batch).backward();
//   }
//
// Gathering is a collective, so all ranks must make the same passes.
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/models/forward_hook.h"
#include "trainer/optimizers/division.h"
#include "trainer/parts.h"

namespace trainwreck {

class DividedParameters : public ForwardHook {
 public:
  // Separates division.own() from the parameters, which have no memory from here on. `division` and
  // `communicator` must outlive it.
  DividedParameters(std::shared_ptr<Model> model, Division& division, Communicator& communicator);
  ~DividedParameters() override;
  DividedParameters(const DividedParameters&) = delete;
  DividedParameters& operator=(const DividedParameters&) = delete;

  void OnBegin(const std::string& module) override;
  void OnOutput(const std::string& module, at::Tensor& output) override;

  // The digest of each parameter; gathers one section after the other. A collective.
  std::vector<std::uint64_t> Digests();

  // How long gathering took since the pass in progress began, or since this was last asked.
  double TakeSeconds() { return std::exchange(gather_s_, 0); }

  // Around forward and backward passes; may be nested. Null: parameters are whole anyway.
  class Pass {
   public:
    explicit Pass(DividedParameters* parameters);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    DividedParameters* parameters_;
  };

  // Around what needs all parameters at once, outside of passes. With kWritten, what was written
  // into this rank's parts is kept. Null: parameters are whole anyway.
  enum class Use { kRead, kWritten };
  class Whole {
   public:
    explicit Whole(DividedParameters* parameters, Use use = Use::kRead);
    ~Whole();
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

   private:
    DividedParameters* parameters_;
    Use use_;
  };

 private:
  // Parameters that are gathered together.
  struct Unit {
    std::vector<std::size_t> parameters;
    std::vector<OwnedPiece> pieces;
    at::Tensor flat;  // all of them, one behind the other; without memory while they are away
  };
  void Divide(Unit& unit);
  void Gather(Unit& unit);
  void Release(Unit& unit);
  void SetStorage(const Unit& unit, const c10::Storage& storage);  // of its parameters
  // Gathers a section, and lets the one go that was there before.
  void Need(Unit& section);
  // Calls `visit(part, memory)` for each of this rank's parts and its place in the gathered unit.
  template <typename Visit>
  void ForOwn(const Unit& unit, const Visit& visit);

  std::shared_ptr<Model> model_;
  const Division& division_;
  Communicator& communicator_;
  std::map<std::string, Unit> sections_;  // by their modules
  c10::Storage away_;        // of parameters that are not there: an error for who reads it
  Unit others_;              // parameters of no section
  Unit* current_ = nullptr;  // the section that is there
  int passes_ = 0;           // in progress, one within the other
  double gather_s_ = 0;
};

}  // namespace trainwreck
