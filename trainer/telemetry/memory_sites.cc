#include "trainer/telemetry/memory_sites.h"

#include <numeric>
#include <string>

namespace trainwreck {

Json ByOwner(const MemoryByOwner& bytes) {
  Json by_owner = Json::object();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    by_owner[ToString(static_cast<MemoryOwner>(i))] = bytes[i];
  }
  return by_owner;
}

Json BySite(const std::vector<std::int64_t>& bytes) {
  const std::vector<MemorySite> sites = MemorySites();
  Json by_site = Json::object();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == 0) continue;
    by_site[i == 0 ? "other" : sites[i].function + " (" + sites[i].at + ")"] = bytes[i];
  }
  return by_site;
}

Json LargestSite(MemoryOwner owner, const std::vector<std::int64_t>& bytes) {
  const std::vector<MemorySite> sites = MemorySites();
  std::size_t largest = 0;
  std::int64_t most = 0;
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    if (sites[i].owner != owner || bytes[i] <= most) continue;
    largest = i;
    most = bytes[i];
  }
  if (largest == 0) return Json::object();
  const auto all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  return {{"site", sites[largest].function},
          {"site_at", sites[largest].at},
          {"site_share", static_cast<double>(most) / static_cast<double>(all)}};
}

}  // namespace trainwreck
