#include "trainer/recipe/model_kinds.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace trainwreck {
namespace {

// Built on first use: registrations run before main, in no particular order.
std::map<std::string, ModelKind>& MutableKinds() {
  static auto* kinds = new std::map<std::string, ModelKind>();
  return *kinds;
}

[[noreturn]] void Refuse(const std::string& name, const char* why) {
  std::fprintf(stderr, "model `%s`: %s\n", name.c_str(), why);
  std::abort();
}

}  // namespace

const std::map<std::string, ModelKind>& ModelKinds() { return MutableKinds(); }

bool RegisterModel(ModelKind kind) {
  const std::string name = kind.name;
  if (name.empty() ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos) {
    Refuse(name, "a model's name is of a-z, 0-9 and '_'");
  }
  if (!MutableKinds().emplace(name, std::move(kind)).second) Refuse(name, "is registered twice");
  return true;
}

}  // namespace trainwreck
