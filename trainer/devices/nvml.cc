#include "trainer/devices/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace trainwreck {
namespace {

// NVML's binary interface, as its reference manual gives it. It does not change within a `_v2`
// name, so these few lines stand for nvml.h, which many machines with a driver lack.
using NvmlDevice = void*;
constexpr int kSuccess = 0;
constexpr unsigned kTemperatureGpu = 0;          // NVML_TEMPERATURE_GPU
constexpr unsigned kClockSm = 1;                 // NVML_CLOCK_SM
constexpr unsigned kMemoryErrorUncorrected = 1;  // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr unsigned kVolatileEcc = 0;             // NVML_VOLATILE_ECC

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*handle)(const char* pci_bus_id, NvmlDevice* device) = nullptr;
  int (*temperature)(NvmlDevice device, unsigned sensor, unsigned* celsius) = nullptr;
  int (*clock)(NvmlDevice device, unsigned type, unsigned* mhz) = nullptr;
  int (*ecc_errors)(NvmlDevice device, unsigned type, unsigned counter,
                    unsigned long long* count) = nullptr;
};

std::unique_ptr<Nvml> Nvml::Load(const std::string& library) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return nullptr;
  auto functions = std::make_unique<Functions>();
  const bool complete = Find(loaded, "nvmlInit_v2", functions->init) &&
                        Find(loaded, "nvmlShutdown", functions->shutdown) &&
                        Find(loaded, "nvmlDeviceGetHandleByPciBusId_v2", functions->handle) &&
                        Find(loaded, "nvmlDeviceGetTemperature", functions->temperature) &&
                        Find(loaded, "nvmlDeviceGetClockInfo", functions->clock) &&
                        Find(loaded, "nvmlDeviceGetTotalEccErrors", functions->ecc_errors);
  if (!complete || functions->init() != kSuccess) {
    dlclose(loaded);
    return nullptr;
  }
  return std::unique_ptr<Nvml>(new Nvml(loaded, std::move(functions)));
}

Nvml::Nvml(void* library, std::unique_ptr<Functions> functions)
    : library_(library), functions_(std::move(functions)) {}

Nvml::~Nvml() {
  functions_->shutdown();
  dlclose(library_);
}

DeviceHealth Nvml::Read(const std::string& pci_bus_id) {
  DeviceHealth health;
  NvmlDevice device = nullptr;
  if (functions_->handle(pci_bus_id.c_str(), &device) != kSuccess) return health;
  unsigned value = 0;
  if (functions_->temperature(device, kTemperatureGpu, &value) == kSuccess) {
    health.temperature_c = value;
  }
  if (functions_->clock(device, kClockSm, &value) == kSuccess) health.clock_mhz = value;
  unsigned long long count = 0;
  if (functions_->ecc_errors(device, kMemoryErrorUncorrected, kVolatileEcc, &count) == kSuccess) {
    health.ecc_errors = static_cast<double>(count);
  }
  return health;
}

}  // namespace trainwreck
