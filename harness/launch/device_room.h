// Which runs fit on a machine's GPUs together: by the memory of each GPU, and by a limit of runs on
// one. A run takes GPUs before it starts and gives them back when it has ended.
//
//     DeviceRoom room(devices, limits);
//     if (room.Fits(run)) gpus = room.Take(run);
//     ...
//     room.Give(run, gpus);
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
  // GPUs alone count: the cores of the CPU are packed by others. Their memory is what runs may
  // take.
  DeviceRoom(const std::vector<DeviceInfo>& devices, DeviceLimits limits);

  // Whether there is room for it on a GPU for each rank, or on all where there are fewer. A run
  // that would fit on no GPU fits when nothing else runs there: it has to say itself that the
  // memory does not suffice.
  bool Fits(const Run& run) const;
  // The numbers of the GPUs that it gets: those with the fewest runs, in ascending order.
  std::vector<int> Take(const Run& run);
  void Give(const Run& run, const std::vector<int>& gpus);
  // What CUDA_VISIBLE_DEVICES of a run is that has got these GPUs, where that of this process is
  // `own` ("2,3,GPU-5f"; empty: it is not set). Empty: as it is, for a run that needs no GPU or gets
  // all.
  std::string Visible(const std::vector<int>& gpus, const std::string& own) const;

 private:
  struct Gpu {
    std::int64_t memory_bytes = 0;  // 0: not known
    std::int64_t used_bytes = 0;
    int runs = 0;
  };

  std::size_t GpusOf(const Run& run) const;  // how many
  bool HasRoom(const Gpu& gpu, const Run& run) const;
  Gpu& At(int gpu) { return gpus_[static_cast<std::size_t>(gpu)]; }
  std::int64_t BytesOf(const Run& run) const;

  const DeviceLimits limits_;
  std::vector<Gpu> gpus_;
};

}  // namespace trainwreck
