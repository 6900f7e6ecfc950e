// The kinds of device that this program knows, and which of them a run gets.
//
//   std::unique_ptr<Device> device = OpenDevice(recipe.device, {.rank = 0, .world_size = 1});
//
// The CPU is always there. A kind that needs libraries of its own lives in a file that registers
// itself (device_cuda.cc) and is linked only into a program that is to have it; nothing else knows
// whether it is.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

struct DevicePlace {
  int rank = 0;                      // among the ranks of this machine
  int world_size = 1;                // of these
  bool deterministic = false;        // refuse operations that cannot be repeated bit by bit
  bool expandable_segments = false;  // of a GPU's memory
};

struct DeviceKind {
  DeviceChoice choice = DeviceChoice::kCpu;
  std::string backend;  // of its communicator: "gloo", "nccl"
  // The devices of this kind on this machine. The first call may load drivers and start threads, so
  // do not call it before a fork.
  std::function<std::vector<DeviceInfo>()> list;
  std::function<std::unique_ptr<Device>(const DevicePlace& place)> open;
};

// Called while the program loads.
struct RegisterDeviceKind {
  explicit RegisterDeviceKind(DeviceKind kind);
};

// The linked-in kinds other than the CPU, whether or not this machine has such devices.
const std::vector<DeviceKind>& AcceleratorKinds();

// Every device of this machine that a run could get; the CPU first.
std::vector<DeviceInfo> ListDevices();

// Opens the device of a rank. kAuto: the first accelerator with one device for each rank, else the
// CPU. Throws RecipeError when the recipe names a device that is not there.
std::unique_ptr<Device> OpenDevice(DeviceChoice choice, const DevicePlace& place);

}  // namespace trainwreck
