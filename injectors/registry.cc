#include "injectors/registry.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace trainwreck {
namespace {

// Built on first use: registrations run before main, in no particular order.
std::map<std::string, RegisteredFault>& MutableRegistry() {
  static auto* registry = new std::map<std::string, RegisteredFault>();
  return *registry;
}

[[noreturn]] void Refuse(const std::string& name, const char* why) {
  std::fprintf(stderr, "fault `%s`: %s\n", name.c_str(), why);
  std::abort();
}

bool IsSiteDotFault(const std::string& name) {
  const auto dot = name.find('.');
  return dot != std::string::npos && dot > 0 && dot + 1 < name.size() &&
         name.find('.', dot + 1) == std::string::npos &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string::npos;
}

}  // namespace

const std::map<std::string, RegisteredFault>& FaultRegistry() { return MutableRegistry(); }

bool RegisterFault(FaultInfo info, InjectorFactory make) {
  const std::string name = info.name;
  if (!IsSiteDotFault(name)) Refuse(name, "a fault's name is site.fault, in lower case");
  if (info.amends.empty() && make == nullptr) Refuse(name, "has neither amendments nor a class");
  if (!info.amends.empty() && make != nullptr) Refuse(name, "has amendments and a class; choose");
  const bool is_new =
      MutableRegistry().emplace(name, RegisteredFault{std::move(info), make}).second;
  if (!is_new) Refuse(name, "is registered twice");
  return true;
}

}  // namespace trainwreck
