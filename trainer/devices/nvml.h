// Temperature, clock and memory errors of an NVIDIA GPU, from NVML: the library of the driver that
// nvidia-smi reads. It is loaded at run time, so a program needs neither header nor library to be
// built, and a machine without the driver just has no sensors. Not run on a GPU yet.
//
//   std::unique_ptr<Nvml> nvml = Nvml::Load();
//   if (nvml) health = nvml->Read("00000000:3B:00.0");
#pragma once

#include <memory>
#include <string>

#include "trainer/device_health.h"

namespace trainwreck {

class Nvml {
 public:
  // Null when there is no such library, or it finds no driver.
  static std::unique_ptr<Nvml> Load(const std::string& library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // The readings of the GPU at a PCI address. CUDA and NVML agree on this address, but not on
  // indices when CUDA_VISIBLE_DEVICES is set. Sensors that the GPU does not have stay empty. Takes
  // some 10 us to 1 ms, on the calling thread; waits for nothing on the GPU.
  DeviceHealth Read(const std::string& pci_bus_id);

 private:
  struct Functions;
  Nvml(void* library, std::unique_ptr<Functions> functions);

  void* library_;
  std::unique_ptr<Functions> functions_;
};

}  // namespace trainwreck
