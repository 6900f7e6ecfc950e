#include "trainer/devices/nvml.h"

#include <dlfcn.h>

#include <utility>

namespace trainwreck {
namespace {

// NVML's binary interface, as its reference manual gives it. It does not change within a `_v2`
// name, so these few lines stand for nvml.h, which many machines with a driver lack.
using NvmlDevice = void*;
using NvmlEventSet = void*;
constexpr int kSuccess = 0;
constexpr unsigned kTemperatureGpu = 0;              // NVML_TEMPERATURE_GPU
constexpr unsigned kClockSm = 1;                     // NVML_CLOCK_SM
constexpr unsigned kMemoryErrorCorrected = 0;        // NVML_MEMORY_ERROR_TYPE_CORRECTED
constexpr unsigned kMemoryErrorUncorrected = 1;      // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
constexpr unsigned kVolatileEcc = 0;                 // NVML_VOLATILE_ECC
constexpr unsigned long long kXidCriticalError = 8;  // nvmlEventTypeXidCriticalError
constexpr int kXidsAtOnce = 64;                      // of a driver that says one over and over

struct NvmlEventData {  // nvmlEventData_t of nvmlEventSetWait_v2
  NvmlDevice device;
  unsigned long long type;
  unsigned long long data;  // of an Xid: its code
  unsigned gpu_instance;
  unsigned compute_instance;
};

// Bits of nvmlDeviceGetCurrentClocksEventReasons that are for the GPU's safety. An idle GPU, or one
// whose clocks somebody has set, is not throttled.
struct ThrottleReason {
  unsigned long long bit;
  const char* name;
};
constexpr ThrottleReason kThrottleReasons[] = {
    {0x04, "power_cap"},    // nvmlClocksEventReasonSwPowerCap
    {0x08, "hw_slowdown"},  // nvmlClocksThrottleReasonHwSlowdown
    {0x20, "sw_thermal"},   // nvmlClocksEventReasonSwThermalSlowdown
    {0x40, "hw_thermal"},   // nvmlClocksThrottleReasonHwThermalSlowdown
    {0x80, "power_brake"},  // nvmlClocksThrottleReasonHwPowerBrakeSlowdown
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Whether the library has the function, and it succeeds.
template <typename Function, typename... Arguments>
bool Succeeds(Function* function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == kSuccess;
}

}  // namespace

// Any but the first three may be null.
struct Nvml::Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*handle)(const char* pci_bus_id, NvmlDevice* device) = nullptr;
  int (*temperature)(NvmlDevice device, unsigned sensor, unsigned* celsius) = nullptr;
  int (*clock)(NvmlDevice device, unsigned type, unsigned* mhz) = nullptr;
  int (*power)(NvmlDevice device, unsigned* milliwatts) = nullptr;
  int (*ecc_errors)(NvmlDevice device, unsigned type, unsigned counter,
                    unsigned long long* count) = nullptr;
  int (*remapped_rows)(NvmlDevice device, unsigned* correctable, unsigned* uncorrectable,
                       unsigned* pending, unsigned* failed) = nullptr;
  int (*clock_reasons)(NvmlDevice device, unsigned long long* reasons) = nullptr;
  int (*create_events)(NvmlEventSet* set) = nullptr;
  int (*free_events)(NvmlEventSet set) = nullptr;
  int (*register_events)(NvmlDevice device, unsigned long long types, NvmlEventSet set) = nullptr;
  int (*wait_for_event)(NvmlEventSet set, NvmlEventData* data, unsigned timeout_ms) = nullptr;
};

std::unique_ptr<Nvml> Nvml::Load(const std::string& library) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return nullptr;
  auto functions = std::make_unique<Functions>();
  const bool has_gpus = Find(loaded, "nvmlInit_v2", functions->init) &&
                        Find(loaded, "nvmlShutdown", functions->shutdown) &&
                        Find(loaded, "nvmlDeviceGetHandleByPciBusId_v2", functions->handle);
  if (!has_gpus || functions->init() != kSuccess) {
    dlclose(loaded);
    return nullptr;
  }
  Find(loaded, "nvmlDeviceGetTemperature", functions->temperature);
  Find(loaded, "nvmlDeviceGetClockInfo", functions->clock);
  Find(loaded, "nvmlDeviceGetPowerUsage", functions->power);
  Find(loaded, "nvmlDeviceGetTotalEccErrors", functions->ecc_errors);
  Find(loaded, "nvmlDeviceGetRemappedRows", functions->remapped_rows);
  // Its name since driver 535, and the one before.
  Find(loaded, "nvmlDeviceGetCurrentClocksEventReasons", functions->clock_reasons) ||
      Find(loaded, "nvmlDeviceGetCurrentClocksThrottleReasons", functions->clock_reasons);
  Find(loaded, "nvmlEventSetCreate", functions->create_events);
  Find(loaded, "nvmlEventSetFree", functions->free_events);
  Find(loaded, "nvmlDeviceRegisterEvents", functions->register_events);
  Find(loaded, "nvmlEventSetWait_v2", functions->wait_for_event);
  return std::unique_ptr<Nvml>(new Nvml(loaded, std::move(functions)));
}

Nvml::Nvml(void* library, std::unique_ptr<Functions> functions)
    : library_(library), functions_(std::move(functions)) {}

Nvml::~Nvml() {
  if (watched_ != nullptr) functions_->free_events(watched_);
  functions_->shutdown();
  dlclose(library_);
}

bool Nvml::Watch(const std::string& pci_bus_id) {
  const Functions& nvml = *functions_;
  NvmlDevice device = nullptr;
  if (watched_ != nullptr || nvml.free_events == nullptr || nvml.wait_for_event == nullptr ||
      nvml.register_events == nullptr || nvml.handle(pci_bus_id.c_str(), &device) != kSuccess ||
      !Succeeds(nvml.create_events, &watched_)) {
    return watched_ != nullptr;
  }
  if (nvml.register_events(device, kXidCriticalError, watched_) == kSuccess) return true;
  nvml.free_events(std::exchange(watched_, nullptr));
  return false;
}

std::vector<XidError> Nvml::TakeXids(std::chrono::milliseconds patience) {
  std::vector<XidError> xids;
  if (watched_ == nullptr) return xids;
  auto timeout_ms = static_cast<unsigned>(patience.count());
  NvmlEventData event = {};
  for (int i = 0; i < kXidsAtOnce && functions_->wait_for_event(watched_, &event, timeout_ms) == 0;
       ++i) {
    timeout_ms = 0;
    if (event.type != kXidCriticalError) continue;
    const auto code = static_cast<std::int64_t>(event.data);
    xids.push_back({code, MeaningOfXid(code)});
  }
  return xids;
}

DeviceHealth Nvml::Read(const std::string& pci_bus_id, std::chrono::milliseconds patience) {
  const Functions& nvml = *functions_;
  DeviceHealth health{.xids = TakeXids(patience)};  // also of a GPU that is no longer there
  NvmlDevice device = nullptr;
  if (nvml.handle(pci_bus_id.c_str(), &device) != kSuccess) return health;
  unsigned value = 0;
  if (Succeeds(nvml.temperature, device, kTemperatureGpu, &value)) health.temperature_c = value;
  if (Succeeds(nvml.clock, device, kClockSm, &value)) health.clock_mhz = value;
  if (Succeeds(nvml.power, device, &value)) health.power_w = value * 1e-3;
  unsigned long long count = 0;
  if (Succeeds(nvml.ecc_errors, device, kMemoryErrorUncorrected, kVolatileEcc, &count)) {
    health.ecc_errors = static_cast<double>(count);
  }
  if (Succeeds(nvml.ecc_errors, device, kMemoryErrorCorrected, kVolatileEcc, &count)) {
    health.corrected_errors = static_cast<double>(count);
  }
  unsigned correctable = 0, uncorrectable = 0, pending = 0, failed = 0;
  if (Succeeds(nvml.remapped_rows, device, &correctable, &uncorrectable, &pending, &failed)) {
    health.remapped_rows =
        RemappedRows{static_cast<double>(correctable), static_cast<double>(uncorrectable),
                     pending != 0, failed != 0};
  }
  unsigned long long reasons = 0;
  if (Succeeds(nvml.clock_reasons, device, &reasons)) {
    health.throttled.emplace();
    for (const ThrottleReason& reason : kThrottleReasons) {
      if ((reasons & reason.bit) != 0) health.throttled->emplace_back(reason.name);
    }
  }
  return health;
}

const char* MeaningOfXid(std::int64_t code) {
  switch (code) {
    case 13:
      return "graphics engine exception";
    case 31:
      return "GPU memory page fault";
    case 43:
      return "GPU stopped processing";
    case 45:
      return "preemptive cleanup, due to previous errors";
    case 48:
      return "double bit ECC error";
    case 61:
      return "internal micro-controller breakpoint or warning";
    case 62:
      return "internal micro-controller halt";
    case 63:
      return "ECC page retirement or row remapping recording event";
    case 64:
      return "ECC page retirement or row remapper recording failure";
    case 74:
      return "NVLink error";
    case 79:
      return "GPU has fallen off the bus";
    case 94:
      return "contained ECC error";
    case 95:
      return "uncontained ECC error";
    default:
      return "";
  }
}

}  // namespace trainwreck
