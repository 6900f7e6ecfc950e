#include "trainer/ranks/divided_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/StorageImpl.h>

#include <stdexcept>
#include <utility>

#include "trainer/memory_owner.h"
#include "trainer/models/model.h"
#include "trainer/stopwatch.h"
#include "trainer/tensor_views.h"

namespace trainwreck {
namespace {

// The modules that are sections, the outermost ones.
std::vector<std::string> SectionsOf(const Model& model) {
  std::vector<std::string> sections;
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    if (dynamic_cast<const Section*>(item.value().get()) == nullptr) continue;
    const bool is_inner = !sections.empty() && item.key().starts_with(sections.back() + ".");
    if (!is_inner) sections.push_back(item.key());
  }
  return sections;
}

// How many modules a parameter is registered in, by its place in memory as a tensor.
std::map<const void*, int> UsersOf(const Model& model) {
  std::map<const void*, int> users;
  for (const auto& item : model.named_parameters()) ++users[item.value().unsafeGetTensorImpl()];
  return users;
}

}  // namespace

DividedParameters::DividedParameters(std::shared_ptr<Model> model, Division& division,
                                     Communicator& communicator)
    : model_(std::move(model)), division_(division), communicator_(communicator) {
  MemoryScope memory(MemoryOwner::kParameters);
  division.Separate();
  away_ = at::empty({0}, division_.parameters()[0].second.options()).storage();
  away_.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(
      "a parameter is read while it is divided among the ranks (parallel.zero_stage 3)");
  const std::vector<std::string> sections = SectionsOf(*model_);
  std::map<const void*, int> users = UsersOf(*model_);
  for (std::size_t i = 0; i < division_.parameters().size(); ++i) {
    const auto& [name, parameter] = division_.parameters()[i];
    Unit* unit = &others_;  // also for what modules share
    for (const std::string& section : sections) {
      const bool is_alone = users[parameter.unsafeGetTensorImpl()] == 1;
      if (is_alone && name.starts_with(section + ".")) unit = &sections_[section];
    }
    unit->parameters.push_back(i);
  }
  for (auto& [name, section] : sections_) Divide(section);
  Divide(others_);
  model_->AddHook(*this);
}

DividedParameters::~DividedParameters() { model_->RemoveHook(*this); }

// Lets the parameters of a unit share memory, and frees it.
void DividedParameters::Divide(Unit& unit) {
  if (unit.parameters.empty()) return;
  unit.pieces = division_.PiecesOf(unit.parameters);
  std::int64_t elements = 0;
  for (const OwnedPiece& piece : unit.pieces) elements += piece.size;
  unit.flat =
      at::empty({elements}, division_.parameters()[unit.parameters[0]].second.detach().options());
  std::int64_t begin = 0;
  for (const std::size_t i : unit.parameters) {
    at::Tensor parameter = division_.parameters()[i].second;
    const std::int64_t size = parameter.numel();
    parameter.set_data(unit.flat.narrow(0, begin, size).view(parameter.sizes()));
    begin += size;
  }
  Release(unit);
}

template <typename Visit>
void DividedParameters::ForOwn(const Unit& unit, const Visit& visit) {
  for (const OwnedPiece& piece : unit.pieces) {
    std::int64_t begin = piece.begin;
    for (const std::size_t i : piece.parts) {
      const std::int64_t size = division_.parts()[i].size;
      if (piece.owner == division_.rank()) {
        visit(division_.own()[division_.own_of(i)].second, unit.flat.narrow(0, begin, size));
      }
      begin += size;
    }
  }
}

void DividedParameters::Gather(Unit& unit) {
  if (unit.parameters.empty()) return;
  Stopwatch watch(gather_s_);
  MemoryScope scope(MemoryOwner::kParameters);
  at::NoGradGuard no_grad;
  // Into the same storage each time: what a graph has kept of the parameters looks at it.
  c10::StorageImpl* memory = unit.flat.storage().unsafeGetStorageImpl();
  const std::size_t bytes = static_cast<std::size_t>(unit.flat.numel()) * unit.flat.element_size();
  memory->set_data_ptr_noswap(memory->allocator()->allocate(bytes));
  memory->set_nbytes(bytes);
  SetStorage(unit, unit.flat.storage());
  ForOwn(unit, [](const at::Tensor& own, at::Tensor place) { place.copy_(own); });
  for (const OwnedPiece& piece : unit.pieces) {
    at::Tensor part = unit.flat.narrow(0, piece.begin, piece.size);
    communicator_.Broadcast(part, piece.owner);
  }
}

void DividedParameters::Release(Unit& unit) {
  if (unit.parameters.empty()) return;
  SetStorage(unit, away_);
  unit.flat.storage().unsafeGetStorageImpl()->reset();
}

void DividedParameters::SetStorage(const Unit& unit, const c10::Storage& storage) {
  for (const std::size_t i : unit.parameters) {
    division_.parameters()[i].second.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  }
}

void DividedParameters::Need(Unit& section) {
  if (current_ == &section) return;
  if (passes_ == 0)
    throw std::logic_error("a pass through divided parameters that is not announced");
  if (current_ != nullptr) Release(*std::exchange(current_, nullptr));
  Gather(section);
  current_ = &section;
}

void DividedParameters::OnBegin(const std::string& module) {
  const auto section = sections_.find(module);
  if (section != sections_.end()) Need(section->second);
}

// The backward pass of a section begins with the gradient of its output.
void DividedParameters::OnOutput(const std::string& module, at::Tensor& output) {
  const auto section = sections_.find(module);
  if (section == sections_.end()) return;
  if (!at::GradMode::is_enabled() || !output.requires_grad()) return;
  output.register_hook([this, unit = &section->second](const at::Tensor&) { Need(*unit); });
}

std::vector<std::uint64_t> DividedParameters::Digests() {
  std::vector<std::uint64_t> digests(division_.parameters().size());
  const auto read = [&](Unit& unit) {
    Gather(unit);
    std::vector<at::Tensor> tensors;
    for (const std::size_t i : unit.parameters) {
      tensors.push_back(division_.parameters()[i].second.detach());
    }
    const std::vector<std::uint64_t> some = DigestsOf(tensors);
    for (std::size_t i = 0; i < some.size(); ++i) digests[unit.parameters[i]] = some[i];
    Release(unit);
  };
  for (auto& [name, section] : sections_) read(section);
  read(others_);
  return digests;
}

DividedParameters::Pass::Pass(DividedParameters* parameters) : parameters_(parameters) {
  if (parameters_ == nullptr) return;
  if (parameters_->passes_++ > 0) return;
  parameters_->TakeSeconds();
  parameters_->Gather(parameters_->others_);
}

DividedParameters::Pass::~Pass() {
  if (parameters_ == nullptr || --parameters_->passes_ > 0) return;
  if (Unit* last = std::exchange(parameters_->current_, nullptr)) parameters_->Release(*last);
  parameters_->Release(parameters_->others_);
}

DividedParameters::Whole::Whole(DividedParameters* parameters, Use use)
    : parameters_(parameters), use_(use) {
  if (parameters_ == nullptr) return;
  for (auto& [name, section] : parameters_->sections_) parameters_->Gather(section);
  parameters_->Gather(parameters_->others_);
}

DividedParameters::Whole::~Whole() {
  if (parameters_ == nullptr) return;
  at::NoGradGuard no_grad;
  const auto end = [this](Unit& unit) {
    if (use_ == Use::kWritten) {
      parameters_->ForOwn(unit, [](at::Tensor own, const at::Tensor& place) { own.copy_(place); });
    }
    parameters_->Release(unit);
  };
  for (auto& [name, section] : parameters_->sections_) end(section);
  end(parameters_->others_);
}

}  // namespace trainwreck
