// Releases of a Python package as what a bisection goes through: each is put before the target as
// an overlay (overlays.h). The target itself stays as it is.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/bisect/lineage.h"
#include "harness/bisect/overlays.h"
#include "harness/bisect/package_version.h"

namespace trainwreck {

// A version as pip spells it, and its place in the order.
struct Listing {
  PackageVersion version;
  std::string text;
  bool operator<(const Listing& other) const { return version < other.version; }
};

class Releases : public Lineage {
 public:
  // Throws UsageError.
  explicit Releases(const BisectOptions& options);

  std::string noun() const override { return "release"; }
  bool is_backwards() const override { return is_backwards_; }
  std::string root() const override { return root_; }
  const CommitList& commits() const override { return commits_; }
  Json Question() const override;
  std::string Note() const override;
  std::vector<std::string> Listed(const std::string& text,
                                  const std::string& option) const override;
  std::string Describe(const std::string& id) const override { return package_ + " " + id; }
  std::string Subject(const std::string& id) const override { return Describe(id); }
  std::string Difference(const std::string& before, const std::string& culprit) const override;
  void Open(const std::string& folder) override;
  bool IsReady(const Commit& commit) const override;
  Built Prepare(const Commit& commit) override;
  RunPlace PlaceOf(const Commit& commit) const override;

 private:
  void FindTargetProgram();
  void FindPartners();
  void FindReleases(const Listing& good, const Listing& bad);
  void Choose(std::vector<Listing> listed);
  Release ReleaseOf(const Commit& commit) const { return {package_, commit.id}; }

  const BisectOptions& options_;
  std::string package_, root_;
  std::string python_, target_folder_, target_digest_;
  std::unique_ptr<Overlays> overlays_;
  std::vector<Release> partners_;
  bool is_backwards_ = false;
  CommitList commits_;
  std::vector<std::string> left_out_;  // pre-releases between the ends
  std::set<std::string> imported_;     // ids
};

}  // namespace trainwreck
