// How much of the memory of this machine's GPUs other programs use. The driver is asked before any
// run of ours starts, by NVML, the library that nvidia-smi reads; it is loaded at run time. Tested
// with a library in its place: not run on a GPU yet.
//
//     const std::vector<std::int64_t> used = UsedByOthers(devices);
//     if (!SayOthers(devices[0], used[0]).empty()) ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/protocol/description.h"

namespace trainwreck {

struct GpuMemory {
  std::string uuid;  // "GPU-5f0b3a1c-..."
  std::string name;  // "NVIDIA H200"; empty: the driver does not tell of this one
  std::int64_t free_bytes = 0;
};

// All GPUs by NVML's numbers. Empty when there is no such library, or it finds no driver.
std::vector<GpuMemory> ReadGpuMemory(const std::string& library = "libnvidia-ml.so.1");

// For each device the bytes that others use of its memory. 0 for what is no GPU, and where it is
// not known: a part of a GPU (MIG), a name that differs. `visible` is CUDA_VISIBLE_DEVICES, null
// where that is not set.
std::vector<std::int64_t> UsedByOthers(const std::vector<DeviceInfo>& devices,
                                       const std::vector<GpuMemory>& gpus, const char* visible);
// The same on this machine. The driver is asked at the first call and never again, since runs of
// ours take memory, too.
std::vector<std::int64_t> UsedByOthers(const std::vector<DeviceInfo>& devices);

// The devices, with the memory that others leave.
std::vector<DeviceInfo> LessOthers(std::vector<DeviceInfo> devices,
                                   const std::vector<std::int64_t>& used);

// "other programs use 20.0 of its 139.8 GiB"; empty where that is less than 1 GiB.
std::string SayOthers(const DeviceInfo& device, std::int64_t used_bytes);

}  // namespace trainwreck
