// Which runs fit on a machine's GPUs together: by the memory of each GPU, and by a limit of runs on
// one. A run takes GPUs before it starts and gives them back when it has ended.
//
//     DeviceRoom room(devices, limits);
//     if (room.Fits(run)) room.Take(run);
//     ...
//     room.Give(run);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/plan/run.h"
#include "harness/protocol/description.h"

namespace trainwreck {

struct DeviceLimits {
  int runs = 4;  // on one GPU at a time; its kernels take turns anyway
  // What a run takes of each GPU where the recipe does not say: LibTorch's libraries, cuBLAS's work
  // space, and tensors of the small models here.
  std::int64_t run_bytes = std::int64_t{4} << 30;
};

class DeviceRoom {
 public:
  // GPUs alone count: the cores of the CPU are packed by others.
  DeviceRoom(const std::vector<DeviceInfo>& devices, DeviceLimits limits);

  // Whether each rank's GPU has room for it. A run that would fit on no GPU fits when nothing else
  // runs there: it has to say itself that the memory does not suffice.
  bool Fits(const Run& run) const;
  void Take(const Run& run);
  void Give(const Run& run);

 private:
  struct Gpu {
    std::int64_t memory_bytes = 0;  // 0: not known
    std::int64_t used_bytes = 0;
    int runs = 0;
  };

  // Ranks take the GPUs of their numbers (trainer/devices).
  std::size_t GpusOf(const Run& run) const;
  std::int64_t BytesOf(const Run& run) const;

  const DeviceLimits limits_;
  std::vector<Gpu> gpus_;
};

}  // namespace trainwreck
