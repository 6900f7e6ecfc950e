// Commits of a repository as what a bisection goes through: each is checked out in a worktree of
// ours and built there.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/bisect/lineage.h"
#include "harness/bisect/repository.h"
#include "harness/bisect/workshop.h"

namespace trainwreck {

class Commits : public Lineage {
 public:
  // Throws UsageError and RepositoryError.
  explicit Commits(const BisectOptions& options);

  std::string noun() const override { return "commit"; }
  std::string root() const override { return repository_.root(); }
  TargetPlace target() const override { return target_; }
  const CommitList& commits() const override { return commits_; }
  Json Question() const override;
  std::string Note() const override;
  std::vector<std::string> Listed(const std::string& text,
                                  const std::string& option) const override {
    return repository_.Listed(text, option);
  }
  std::string Describe(const std::string& id) const override { return repository_.Describe(id); }
  std::string Subject(const std::string& id) const override { return repository_.Subject(id); }
  std::string Difference(const std::string& before, const std::string& culprit) const override;
  void Open(const std::string& folder) override;
  bool IsReady(const Commit& commit) const override { return workshop_->IsReady(commit); }
  Built Prepare(const Commit& commit) override { return workshop_->Prepare(commit); }
  RunPlace PlaceOf(const Commit& commit) const override;
  void Close() override { workshop_->RemoveWorktree(); }

 private:
  TargetPlace FindTargetPlace() const;

  const BisectOptions& options_;
  Repository repository_;
  std::vector<std::string> goods_;
  std::string bad_;
  TargetPlace target_;
  CommitList commits_;
  std::unique_ptr<Workshop> workshop_;
};

}  // namespace trainwreck
