// Sensors, memory errors and critical errors of an NVIDIA GPU, from NVML: the library of the driver
// that nvidia-smi reads. It is loaded at run time, so a program needs neither header nor library to
// be built, and a machine without the driver just has no sensors. Nor does an older driver that
// lacks some of the functions. Runs on a GPU have loaded it; nobody has looked at its readings:
// they count as not run on a GPU yet.
//
//   std::unique_ptr<Nvml> nvml = Nvml::Load();
//   if (nvml) nvml->Watch("00000000:3B:00.0");
//   ...
//   if (nvml) health = nvml->Read("00000000:3B:00.0");
#pragma once

#include <chrono>
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

  // From here on, Read() gives the critical errors (Xid) of this GPU. False: its driver does not
  // tell of them.
  bool Watch(const std::string& pci_bus_id);

  // The readings of the GPU at a PCI address. CUDA and NVML agree on this address, but not on
  // indices when CUDA_VISIBLE_DEVICES is set. Sensors that the GPU does not have stay empty. Takes
  // some 10 us to 1 ms, on the calling thread; waits for nothing on the GPU, and at most `patience`
  // for the first critical error.
  DeviceHealth Read(const std::string& pci_bus_id,
                    std::chrono::milliseconds patience = std::chrono::milliseconds(0));

 private:
  struct Functions;
  Nvml(void* library, std::unique_ptr<Functions> functions);
  std::vector<XidError> TakeXids(std::chrono::milliseconds patience);

  void* library_;
  std::unique_ptr<Functions> functions_;
  void* watched_ = nullptr;  // NVML's set of events; null: nothing is watched
};

// "GPU has fallen off the bus", for the well-known codes of NVIDIA's catalogue; empty: others.
const char* MeaningOfXid(std::int64_t code);

}  // namespace trainwreck
