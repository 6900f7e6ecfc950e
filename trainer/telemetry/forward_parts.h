// Splits the memory of activations by the block of the model that made it.
//
//   ForwardParts parts;
//   HookScope scope(*model, &parts);
//   parts.Begin();
//   model->Loss(batch);
//   parts.ByBlock(CpuMemory().peak_by_part);  // {"embed": 4096, "blocks.0": 98304, ...}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/protocol/json.h"
#include "trainer/models/forward_hook.h"

namespace trainwreck {

// A module announces its output when that is there, so a part of the pass is what lies between two
// outputs, and belongs to the block of the second one.
class ForwardParts : public ForwardHook {
 public:
  void Begin();  // of a forward pass
  void OnOutput(const std::string& module, at::Tensor& output) override;
  // Bytes of each block, in the order of the pass; their sum is that of `by_part`.
  Json ByBlock(const std::vector<std::int64_t>& by_part) const;

 private:
  std::size_t next_ = 0;
  std::vector<std::string> blocks_;  // of each part
};

// "blocks.3" of "blocks.3.attn.qkv", "head" of "head".
std::string BlockOf(const std::string& module);

}  // namespace trainwreck
