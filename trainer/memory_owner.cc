#include "trainer/memory_owner.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

namespace trainwreck {
namespace {

thread_local MemoryOwner current = MemoryOwner::kOther;
thread_local std::size_t current_site = 0;
thread_local std::size_t forward_part = 0;
thread_local int uncounted = 0;  // scopes

// "void trainwreck::TrainingLoop::LogStep" of the same with "()"; of a function within another one,
// whose parameters come first, too.
std::string_view WithoutParameters(std::string_view signature) {
  int open = 0;
  for (std::size_t at = signature.rfind(')'); at < signature.size(); --at) {
    open += (signature[at] == ')') - (signature[at] == '(');
    if (open == 0) return signature.substr(0, at);
  }
  return signature;
}

// "TrainingLoop::LogStep": the class, if any, and the function.
std::string NameOf(std::string_view signature) {
  std::string_view path = WithoutParameters(signature.substr(0, signature.find("::<lambda")));
  path.remove_prefix(path.rfind(' ') + 1);
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t end = path.find("::");
    const std::string_view part = path.substr(0, end);
    if (part != "trainwreck" && part != "{anonymous}") parts.push_back(part);
    path.remove_prefix(end == std::string_view::npos ? path.size() : end + 2);
  }
  if (parts.empty()) return std::string(signature);
  const std::string function(parts.back());
  return parts.size() == 1 ? function : std::string(parts[parts.size() - 2]) + "::" + function;
}

std::string PlaceOf(const std::source_location& place) {
  std::string_view file = place.file_name();
  if (file.starts_with("./")) file.remove_prefix(2);
  return std::string(file) + ":" + std::to_string(place.line());
}

// Sites by number. A scope asks for its number each time that it is opened, so that is found
// without an allocation.
class Sites {
 public:
  std::size_t NumberOf(MemoryOwner owner, const std::source_location& place) {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto& [known_owner, known] = places_[i];
      if (known_owner == owner && known.line() == place.line() &&
          known.file_name() == place.file_name()) {
        return i + 1;
      }
    }
    if (places_.size() + 1 == kMemorySites) return 0;
    places_.emplace_back(owner, place);
    return places_.size();
  }

  std::vector<MemorySite> all() {
    std::lock_guard lock(mutex_);
    std::vector<MemorySite> sites(1);
    for (const auto& [owner, place] : places_) {
      sites.push_back(
          {.owner = owner, .function = NameOf(place.function_name()), .at = PlaceOf(place)});
    }
    return sites;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<MemoryOwner, std::source_location>> places_;
};

Sites& TheSites() {
  static auto* sites = new Sites();  // tensors may outlive every static object
  return *sites;
}

}  // namespace

const char* ToString(MemoryOwner owner) {
  switch (owner) {
    case MemoryOwner::kOther:
      return "other";
    case MemoryOwner::kParameters:
      return "parameters";
    case MemoryOwner::kGradients:
      return "gradients";
    case MemoryOwner::kOptimizer:
      return "optimizer";
    case MemoryOwner::kActivations:
      return "activations";
    case MemoryOwner::kEvaluation:
      return "evaluation";
    case MemoryOwner::kLogging:
      return "logging";
  }
  return "";
}

MemoryOwner CurrentMemoryOwner() { return current; }

std::vector<MemorySite> MemorySites() { return TheSites().all(); }

std::size_t CurrentMemorySite() { return current_site; }

bool MemoryIsCounted() { return uncounted == 0; }

std::size_t CurrentForwardPart() { return forward_part; }
void SetForwardPart(std::size_t part) { forward_part = std::min(part, kForwardParts - 1); }

MemoryScope::MemoryScope(MemoryOwner owner, std::source_location place)
    : owner_before_(std::exchange(current, owner)),
      site_before_(std::exchange(current_site, TheSites().NumberOf(owner, place))) {}
MemoryScope::~MemoryScope() {
  current = owner_before_;
  current_site = site_before_;
}

UncountedMemory::UncountedMemory() { ++uncounted; }
UncountedMemory::~UncountedMemory() { --uncounted; }

}  // namespace trainwreck
