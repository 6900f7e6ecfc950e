#include "harness/bisect/releases.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "harness/session/session.h"
#include "harness/targets/target_spec.h"
#include "harness/targets/user_files.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

PackageVersion VersionOf(const std::string& text, const std::string& option) {
  if (const auto version = PackageVersion::Parse(text)) return *version;
  throw UsageError(option + ": '" + text + "' is no version, as 1.2.0 is");
}

// What stands on both sides of "..".
std::pair<std::string, std::string> EndsOf(const std::string& range, const std::string& option) {
  const std::size_t dots = range.find("..");
  if (dots == std::string::npos || dots == 0 || dots + 2 == range.size()) {
    throw UsageError(option + ": '" + range +
                     "' is no range: say the good release and the bad one, as 1.0..2.0");
  }
  return {range.substr(0, dots), range.substr(dots + 2)};
}

bool IsPackageName(const std::string& name) {
  static const RE2 kName(R"((?i)[a-z0-9](?:[-_.a-z0-9]*[a-z0-9])?)");
  return RE2::FullMatch(name, kName);
}

// The listed one that is this version, in whatever spelling.
const Listing* Find(const std::vector<Listing>& listed, const PackageVersion& version) {
  const auto found = std::find_if(listed.begin(), listed.end(), [&](const Listing& listing) {
    return listing.version == version;
  });
  return found == listed.end() ? nullptr : &*found;
}

Commit CommitOf(const Listing& listing, int number) {
  return {listing.text, listing.text,
          number == 0 ? std::vector<int>() : std::vector<int>{number - 1}};
}

}  // namespace

Releases::Releases(const BisectOptions& options)
    : options_(options), package_(options.versions.at(0)), root_(fs::current_path().string()) {
  if (!IsPackageName(package_)) {
    throw UsageError("--versions: '" + package_ + "' is no name of a package");
  }
  FindPartners();
  const std::string option = "--versions " + package_;
  const auto [good, bad] = EndsOf(options.versions.at(1), option);
  const Listing ends[] = {{VersionOf(good, option), good}, {VersionOf(bad, option), bad}};
  is_backwards_ = ends[1] < ends[0];
  if (ends[0].version == ends[1].version) {
    throw UsageError(option + ": nothing lies between " + good + " and " + bad);
  }
  FindTargetProgram();
  fs::create_directories(root_ + "/.trainwreck/bisect");
  overlays_ = std::make_unique<Overlays>(python_, root_ + "/.trainwreck/bisect/pip.log");
  FindReleases(ends[0], ends[1]);
}

// Which Python runs the target, and whether it would see an overlay at all.
void Releases::FindTargetProgram() {
  python_ = options_.python;
  target_folder_ = root_;
  if (options_.test.empty()) {
    const FoundTarget found = FindTarget(options_.common);
    if (found.spec == nullptr && (!found.note.empty() || options_.common.target == "reference")) {
      throw UsageError(
          "--versions is of a training program in Python: declare it in trainwreck.yaml "
          "('trainwreck init -- COMMAND'), or name it with --target");
    }
    target_digest_ = DigestOfTarget(OpenSession(options_.common).target);
    if (found.spec != nullptr) {
      target_folder_ = found.spec->folder;
      if (python_.empty()) python_ = PythonOf(*found.spec);
      if (const std::string flag = FlagAgainstPythonPath(*found.spec); !flag.empty()) {
        throw UsageError("the command of target '" + found.name + "' has Python's " + flag +
                         ", which ignores PYTHONPATH: it would never see another release");
      }
    }
  }
  if (python_.empty()) python_ = "python3";
  if (python_.find('/') != std::string::npos) {
    python_ = (fs::path(options_.python.empty() ? target_folder_ : root_) / python_)
                  .lexically_normal()
                  .string();
  }
}

void Releases::FindPartners() {
  for (const std::string& text : options_.partners) {
    const std::size_t equals = text.find("==");
    Release partner = {text.substr(0, equals),
                       equals == std::string::npos ? "" : text.substr(equals + 2)};
    const std::string option = "--with " + text;
    if (!IsPackageName(partner.package) || partner.version.empty()) {
      throw UsageError(option + ": say PACKAGE==VERSION");
    }
    VersionOf(partner.version, option);
    if (NormalPackage(partner.package) == NormalPackage(package_)) {
      throw UsageError(option + ": this is the package whose releases are tried");
    }
    partners_.push_back(std::move(partner));
  }
}

void Releases::FindReleases(const Listing& good, const Listing& bad) {
  const std::string option = "--versions " + package_;
  std::vector<std::string> texts;
  const Overlays::Answer answer = overlays_->List(package_, texts);
  if (answer.is_machine) {
    throw BisectionStopped{"pip does not reach an index: " + answer.why + "; see " +
                           overlays_->log()};
  }
  if (!answer.ok) {
    throw UsageError(option + ": pip lists no releases: " + answer.why + "; see " +
                     overlays_->log());
  }
  std::vector<Listing> listed;
  for (const std::string& also : options_.also) {
    listed.push_back({VersionOf(also, "--also"), also});
  }
  for (const std::string& text : texts) {
    const auto version = PackageVersion::Parse(text);
    if (version && Find(listed, *version) == nullptr) listed.push_back({*version, text});
  }
  std::sort(listed.begin(), listed.end());
  for (const auto& [version, text] : {good, bad}) {
    if (Find(listed, version) != nullptr) continue;
    std::vector<std::string> known;
    for (const Listing& listing : listed) known.push_back(listing.text);
    throw UsageError(option + ": pip lists no release " + text + " for " + python_ +
                     NearestHint(text, known) + "; it lists " + known.front() + " to " +
                     known.back() + " (a yanked one has to be named with --also)");
  }
  const auto& [oldest, newest] = std::minmax(good.version, bad.version);
  std::erase_if(listed, [&](const Listing& listing) {
    return listing.version < oldest || newest < listing.version;
  });
  Choose(std::move(listed));
}

// From what lies between the ends, both included.
void Releases::Choose(std::vector<Listing> listed) {
  const auto is_asked_for = [&](const std::string& text) {
    return text == listed.front().text || text == listed.back().text ||
           std::count(options_.also.begin(), options_.also.end(), text) > 0;
  };
  if (is_backwards_) std::reverse(listed.begin(), listed.end());
  for (const Listing& listing : listed) {
    if (listing.version.IsPreRelease() && !options_.pre && !is_asked_for(listing.text)) {
      left_out_.push_back(listing.text);
    } else {
      commits_.push_back(CommitOf(listing, static_cast<int>(commits_.size())));
    }
  }
}

Json Releases::Question() const {
  Json ids = Json::array();
  for (const Commit& commit : commits_) ids.push_back(commit.id);
  Json partners = Json::array();
  for (const Release& partner : partners_) partners.push_back(partner.Text());
  return {"release", NormalPackage(package_), ids, partners, python_, target_digest_};
}

std::string Releases::Note() const {
  if (left_out_.empty()) return "";
  return std::to_string(left_out_.size()) +
         (left_out_.size() == 1 ? " pre-release is" : " pre-releases are") +
         " left out, --pre takes them: " + Join(left_out_);
}

std::vector<std::string> Releases::Listed(const std::string& text,
                                          const std::string& option) const {
  const std::string what = option + " " + text;
  const bool is_range = text.find("..") != std::string::npos;
  const auto [first, last] = is_range ? EndsOf(text, what) : std::pair(text, text);
  const PackageVersion from = VersionOf(first, what), to = VersionOf(last, what);
  std::vector<std::string> ids;
  for (const Commit& commit : commits_) {
    const PackageVersion version = VersionOf(commit.id, what);
    // As of commits, the older one of a range is not in it.
    if (is_range ? from < version && version <= to : version == from) ids.push_back(commit.id);
  }
  return ids;
}

std::string Releases::Difference(const std::string& before, const std::string& culprit) const {
  const Release a = {package_, before}, b = {package_, culprit};
  if (!overlays_->Has(a) || !overlays_->Has(b)) return "";
  return "compare    diff -r " + ShellWord(overlays_->FolderOf(a)) + " " +
         ShellWord(overlays_->FolderOf(b));
}

void Releases::Open(const std::string&) {
  for (const Release& partner : partners_) {
    const Overlays::Answer answer = overlays_->Install(partner, options_.build_limit_seconds);
    if (answer.ok) continue;
    const std::string what =
        "--with " + partner.Text() + ": " + answer.why + "; see " + overlays_->log();
    if (answer.is_machine) throw BisectionStopped{what};
    throw UsageError(what);
  }
}

bool Releases::IsReady(const Commit& commit) const { return overlays_->Has(ReleaseOf(commit)); }

Built Releases::Prepare(const Commit& commit) {
  const Release release = ReleaseOf(commit);
  Built built;
  built.program = "release:" + release.Text();
  built.from_cache = IsReady(commit);
  built.log = overlays_->log();
  built.ok = true;
  if (built.from_cache && imported_.contains(commit.id)) return built;
  Overlays::Answer answer = overlays_->Install(release, options_.build_limit_seconds);
  built.seconds = answer.seconds;
  if (answer.is_machine) {
    throw BisectionStopped{release.Text() + " cannot be installed: " + answer.why + "; see " +
                           built.log};
  }
  std::string what = "cannot be installed: ";
  if (answer.ok) {
    answer = overlays_->Import(release, target_folder_, PlaceOf(commit).environment,
                               options_.build_limit_seconds);
    built.seconds += answer.seconds;
    what = "cannot be imported: ";
  }
  built.ok = answer.ok;
  if (!built.ok) built.why = what + answer.why;
  if (built.ok) imported_.insert(commit.id);
  return built;
}

// The release, its partners, then what was there before. A target that declares a PYTHONPATH of its
// own takes them from TRAINWRECK_PYTHONPATH. A run with an overlay is no run of the user's stack:
// the history records none.
RunPlace Releases::PlaceOf(const Commit& commit) const {
  std::vector<std::string> folders = {overlays_->FolderOf(ReleaseOf(commit))};
  for (const Release& partner : partners_) folders.push_back(overlays_->FolderOf(partner));
  const std::string first = Join(folders, ":");
  const char* inherited = std::getenv("PYTHONPATH");
  const bool has_more = inherited != nullptr && *inherited != '\0';
  return {root_,
          {{"TRAINWRECK_RELEASE", commit.id},
           {"TRAINWRECK_HISTORY", "none"},
           {"TRAINWRECK_PYTHONPATH", first},
           {"PYTHONPATH", has_more ? first + ":" + inherited : first}}};
}

}  // namespace trainwreck
