#include "trainer/devices/device.h"

#include "trainer/devices/cpu_memory.h"
#include "trainer/devices/rng.h"
#include "trainer/ranks/communicator.h"

namespace trainwreck {
namespace {

class CpuDevice : public Device {
 public:
  at::Device torch_device() const override { return at::kCPU; }
  std::string name() const override { return "cpu"; }
  std::unique_ptr<Communicator> MakeCommunicator(const GroupOptions& options) override {
    return MakeGlooCommunicator(options);
  }
  Batch Move(const Batch& batch) const override { return batch; }
  void SaveRng(StateDict& state) const override { SaveTorchRng(state); }
  void LoadRng(const StateDict& state) override { LoadTorchRng(state); }
  std::optional<MemoryUse> Memory() const override {
    const CpuMemoryUse use = CpuMemory();
    return MemoryUse{.allocated_bytes = use.allocated_bytes,
                     .peak_bytes = use.peak_bytes,
                     .by_owner = use.by_owner,
                     .peak_by_owner = use.peak_by_owner,
                     .peak_by_part = use.peak_by_part,
                     .peak_by_site = use.peak_by_site,
                     .moments = use.moments};
  }
  void ResetMemoryPeak() override { ResetCpuMemoryPeak(); }
  void FollowMemory() override { FollowCpuMemory(); }
  void LimitMemory(std::int64_t bytes) override { LimitCpuMemory(bytes); }
  std::optional<DeviceHealth> Health() override { return std::nullopt; }
};

std::vector<DeviceKind>& Registry() {
  static std::vector<DeviceKind> kinds;
  return kinds;
}

}  // namespace

RegisterDeviceKind::RegisterDeviceKind(DeviceKind kind) { Registry().push_back(std::move(kind)); }

const std::vector<DeviceKind>& AcceleratorKinds() { return Registry(); }

std::vector<DeviceInfo> ListDevices() {
  std::vector<DeviceInfo> devices = {{.kind = ToString(DeviceChoice::kCpu)}};
  for (const DeviceKind& kind : AcceleratorKinds()) {
    for (DeviceInfo& device : kind.list()) devices.push_back(std::move(device));
  }
  return devices;
}

std::unique_ptr<Device> OpenDevice(DeviceChoice choice, const DevicePlace& place) {
  if (choice == DeviceChoice::kCpu) return std::make_unique<CpuDevice>();
  std::string problem = "this trainer is built without it";
  for (const DeviceKind& kind : AcceleratorKinds()) {
    if (choice != DeviceChoice::kAuto && choice != kind.choice) continue;
    const auto count = static_cast<int>(kind.list().size());
    if (count > 0 && count >= place.world_size) return kind.open(place);
    problem = "this machine has " + std::to_string(count) + ", and each of " +
              std::to_string(place.world_size) + " ranks needs one";
  }
  if (choice == DeviceChoice::kAuto) return std::make_unique<CpuDevice>();
  throw RecipeError("bad recipe:\n  device: no " + std::string(ToString(choice)) + ": " + problem);
}

}  // namespace trainwreck
