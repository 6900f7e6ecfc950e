#include "trainer/telemetry/forward_parts.h"

#include <algorithm>
#include <cctype>

#include "trainer/memory_owner.h"

namespace trainwreck {

std::string BlockOf(const std::string& module) {
  const std::size_t dot = module.find('.');
  if (dot == std::string::npos) return module;
  const std::size_t end = std::min(module.find('.', dot + 1), module.size());
  const bool is_numbered =
      end > dot + 1 && std::all_of(module.begin() + static_cast<std::ptrdiff_t>(dot) + 1,
                                   module.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](unsigned char c) { return std::isdigit(c) != 0; });
  return module.substr(0, is_numbered ? end : dot);
}

void ForwardParts::Begin() {
  next_ = 0;
  SetForwardPart(0);
}

void ForwardParts::OnOutput(const std::string& module, at::Tensor& /*output*/) {
  if (next_ == blocks_.size()) blocks_.push_back(BlockOf(module));
  SetForwardPart(++next_);
}

Json ForwardParts::ByBlock(const std::vector<std::int64_t>& by_part) const {
  // The last part also has all that are beyond it.
  const std::size_t named = std::min(blocks_.size(), kForwardParts - 1);
  Json bytes = Json::object();
  for (std::size_t part = 0; part < by_part.size(); ++part) {
    if (by_part[part] == 0) continue;
    const std::string block = part < named ? blocks_[part] : "other";
    bytes[block] = bytes.value(block, std::int64_t{0}) + by_part[part];
  }
  return bytes;
}

}  // namespace trainwreck
