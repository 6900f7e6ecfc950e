#include "harness/bisect/package_version.h"

#include <re2/re2.h>

#include <algorithm>
#include <limits>

namespace trainwreck {
namespace {

constexpr int kDevelopment = 0, kAlpha = 1, kBeta = 2, kCandidate = 3, kFinal = 4;
constexpr long kNone = -1, kNoDev = std::numeric_limits<long>::max();

int PreKind(const std::string& word) {
  if (word[0] == 'a') return kAlpha;
  return word[0] == 'b' ? kBeta : kCandidate;  // rc, c, pre, preview
}

// The number after a word; 0 where there is none.
long NumberOf(const std::string& digits) { return digits.empty() ? 0 : std::stol(digits); }

std::vector<std::string> SplitAt(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool IsNumber(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::optional<PackageVersion> PackageVersion::Parse(const std::string& text) {
  static const RE2 kVersion(R"((?i)v?(?:(\d{1,9})!)?(\d{1,17}(?:\.\d{1,17})*))"
                            R"((?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d{0,17}))?)"
                            R"((?:-(\d{1,17})|[-_.]?(post|rev|r)[-_.]?(\d{0,17}))?)"
                            R"((?:[-_.]?(dev)[-_.]?(\d{0,17}))?)"
                            R"((?:\+([a-z0-9]{1,17}(?:[-_.][a-z0-9]{1,17})*))?)");
  std::string epoch, release, pre, pre_number, implicit_post, post, post_number, dev, dev_number,
      local;
  if (!RE2::FullMatch(text, kVersion, &epoch, &release, &pre, &pre_number, &implicit_post, &post,
                      &post_number, &dev, &dev_number, &local)) {
    return std::nullopt;
  }
  for (std::string* word : {&pre, &local}) {
    std::transform(word->begin(), word->end(), word->begin(), ::tolower);
  }
  PackageVersion version;
  version.epoch_ = static_cast<int>(NumberOf(epoch));
  for (const std::string& part : SplitAt(release, ".")) version.release_.push_back(std::stol(part));
  while (version.release_.size() > 1 && version.release_.back() == 0) version.release_.pop_back();
  const bool is_post = !implicit_post.empty() || !post.empty();
  version.pre_kind_ = !pre.empty()               ? PreKind(pre)
                      : !dev.empty() && !is_post ? kDevelopment
                                                 : kFinal;
  version.pre_ = NumberOf(pre_number);
  version.post_ = !is_post ? kNone : NumberOf(implicit_post.empty() ? post_number : implicit_post);
  version.dev_ = dev.empty() ? kNoDev : NumberOf(dev_number);
  if (!local.empty()) {
    for (const std::string& part : SplitAt(local, "-_.")) {
      version.local_.emplace_back(IsNumber(part) ? std::stol(part) : kNone,
                                  IsNumber(part) ? "" : part);
    }
  }
  return version;
}

bool PackageVersion::IsPreRelease() const { return pre_kind_ != kFinal || dev_ != kNoDev; }

}  // namespace trainwreck
