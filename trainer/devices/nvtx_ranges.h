// Ranges on the timeline of a profiler (NVTX; Nsight Systems shows them), one after another, of one
// thread. Without a profiler a call does nothing. Nobody has looked at them on a GPU: not run on a
// GPU yet.
//
//   NvtxRanges ranges;
//   ranges.Begin("forward");
//   ranges.Begin("backward");  // ends "forward"
#pragma once

namespace trainwreck {

class NvtxRanges {
 public:
  NvtxRanges() = default;
  ~NvtxRanges();  // ends the last one
  NvtxRanges(const NvtxRanges&) = delete;
  NvtxRanges& operator=(const NvtxRanges&) = delete;

  void Begin(const char* name);

 private:
  bool has_range_ = false;
};

}  // namespace trainwreck
