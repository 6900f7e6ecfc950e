#include "harness/bisect/commits.h"

#include <filesystem>
#include <system_error>

#include "harness/session/session.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string BelowRoot(const std::string& path, const Repository& repository) {
  std::error_code error;
  const fs::path relative = fs::weakly_canonical(path, error)
                                .lexically_relative(fs::weakly_canonical(repository.root(), error));
  return relative.empty() || *relative.begin() == ".." ? "" : relative.string();
}

}  // namespace

Commits::Commits(const BisectOptions& options) : options_(options), repository_(".") {
  for (const std::string& good : options.goods) {
    goods_.push_back(repository_.Resolve(good, "--good"));
  }
  bad_ = repository_.Resolve(options.bad, "--bad");
  target_ = FindTargetPlace();
  commits_ = repository_.Between(goods_, bad_, {options.first_parent, options.paths});
}

TargetPlace Commits::FindTargetPlace() const {
  if (!options_.test.empty()) return {};
  const std::string& target = options_.common.target;
  if (const std::string file = DeclaringFile(options_.common); !file.empty()) {
    // Its paths lead to the commits only when it lies among them.
    const std::string declaration = BelowRoot(file, repository_);
    if (!declaration.empty()) return {"", declaration};
    throw UsageError("the target is declared in " + file +
                     ", outside of the repository: it would be the same at every commit");
  }
  if (target.empty() || target == "reference") return {};
  if (fs::path(target).is_relative()) return {fs::path(target).lexically_normal().string(), ""};
  return {BelowRoot(target, repository_), ""};
}

Json Commits::Question() const {
  return {goods_, bad_, options_.first_parent, options_.paths, options_.build, options_.artifacts};
}

std::string Commits::Note() const {
  if (commits_.back().id == bad_) return "";
  return Describe(commits_.back().id) +
         " is the last one that changes a path, and stands for --bad";
}

std::string Commits::Difference(const std::string&, const std::string& culprit) const {
  return repository_.DiffSummary(culprit);
}

void Commits::Open(const std::string& folder) {
  workshop_ = std::make_unique<Workshop>(
      repository_, WorkshopOptions{folder, options_.build, target_.program, options_.artifacts,
                                   target_.declaration, options_.build_limit_seconds});
}

RunPlace Commits::PlaceOf(const Commit& commit) const {
  return {workshop_->worktree(), {{"TRAINWRECK_COMMIT", commit.id}}};
}

}  // namespace trainwreck
