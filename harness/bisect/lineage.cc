#include "harness/bisect/lineage.h"

#include <utility>

#include "harness/bisect/commits.h"
#include "harness/bisect/releases.h"
#include "harness/session/session.h"

namespace trainwreck {
namespace {

// Options of one kind of history that were given for the other.
void RefuseForeign(const BisectOptions& options) {
  const bool has_versions = !options.versions.empty();
  const std::pair<const char*, bool> of_commits[] = {
      {"--good", !options.goods.empty()},  {"--bad", !options.bad.empty()},
      {"--build", !options.build.empty()}, {"--artifact", !options.artifacts.empty()},
      {"-- PATH", !options.paths.empty()}, {"--first-parent", options.first_parent}};
  const std::pair<const char*, bool> of_releases[] = {{"--with", !options.partners.empty()},
                                                      {"--pre", options.pre},
                                                      {"--also", !options.also.empty()},
                                                      {"--python", !options.python.empty()}};
  for (const auto& [name, is_given] : of_commits) {
    if (has_versions && is_given) {
      throw UsageError(std::string(name) + " is about commits, and --versions about releases");
    }
  }
  for (const auto& [name, is_given] : of_releases) {
    if (!has_versions && is_given) {
      throw UsageError(std::string(name) + " goes with --versions PACKAGE A..B");
    }
  }
}

}  // namespace

std::unique_ptr<Lineage> MakeLineage(const BisectOptions& options) {
  RefuseForeign(options);
  if (!options.versions.empty()) return std::make_unique<Releases>(options);
  if (options.goods.empty() || options.bad.empty()) {
    throw UsageError(
        "bisect: say where it was good and where it is bad, --good REV --bad REV; or "
        "--versions PACKAGE A..B");
  }
  return std::make_unique<Commits>(options);
}

}  // namespace trainwreck
