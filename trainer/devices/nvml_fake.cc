// A libnvidia-ml.so for tests: one GPU at 00000000:3B:00.0 with 61 C, 1980 MHz, 412 W and 3 memory
// errors. FAKE_NVML says what it lacks: "driver" (nvmlInit fails), "ecc" (as on a GPU without ECC
// memory), "events" (as without the right to them). FAKE_NVML_REASONS: the bits of its clocks. With
// OLD_DRIVER it lacks the functions that came later.
#include <cstdlib>
#include <cstring>
#include <deque>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6,
              kDriverNotLoaded = 9;
int the_gpu = 0;
int uses = 0;

bool Lacks(const char* what) {
  const char* lacking = std::getenv("FAKE_NVML");
  return lacking != nullptr && std::strcmp(lacking, what) == 0;
}

int ReasonsOf(void* device, unsigned long long* reasons) {
  if (device != &the_gpu) return kInvalidArgument;
  const char* bits = std::getenv("FAKE_NVML_REASONS");
  *reasons = bits == nullptr ? 1 : std::strtoull(bits, nullptr, 0);  // 1: it is idle
  return kSuccess;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  if (Lacks("driver")) return kDriverNotLoaded;
  ++uses;
  return kSuccess;
}

int nvmlShutdown() {
  --uses;
  return kSuccess;
}

int FakeNvmlUses() { return uses; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (uses < 1 || std::strcmp(id, "00000000:3B:00.0") != 0) return kNotFound;
  *device = &the_gpu;
  return kSuccess;
}

int nvmlDeviceGetTemperature(void* device, unsigned sensor, unsigned* celsius) {
  if (device != &the_gpu || sensor != 0) return kInvalidArgument;
  *celsius = 61;
  return kSuccess;
}

int nvmlDeviceGetClockInfo(void* device, unsigned type, unsigned* mhz) {
  if (device != &the_gpu || type > 3) return kInvalidArgument;
  const unsigned clocks[] = {1500, 1980, 2619, 1600};  // graphics, multiprocessors, memory, video
  *mhz = clocks[type];
  return kSuccess;
}

int nvmlDeviceGetTotalEccErrors(void* device, unsigned type, unsigned counter,
                                unsigned long long* count) {
  if (device != &the_gpu) return kInvalidArgument;
  if (Lacks("ecc")) return kNotSupported;
  // Those since the last power-up would never go away.
  *count = counter != 0 ? 4711 : type == 1 ? 3 : 17;
  return kSuccess;
}

#ifdef OLD_DRIVER

int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return ReasonsOf(device, reasons);
}

#else

int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  return ReasonsOf(device, reasons);
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (device != &the_gpu) return kInvalidArgument;
  *milliwatts = 412500;
  return kSuccess;
}

int nvmlDeviceGetRemappedRows(void* device, unsigned* correctable, unsigned* uncorrectable,
                              unsigned* pending, unsigned* failed) {
  if (device != &the_gpu) return kInvalidArgument;
  if (Lacks("ecc")) return kNotSupported;
  *correctable = 5;
  *uncorrectable = 2;
  *pending = 1;
  *failed = 0;
  return kSuccess;
}

// Events: one set, for critical errors (8) of the one GPU.
struct FakeEvent {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};
static std::deque<FakeEvent> events;
static int sets = 0;
static bool is_registered = false;
static unsigned patience_ms = 0;  // of all waits together

int FakeNvmlEventSets() { return sets; }
unsigned FakeNvmlPatienceMs() { return patience_ms; }

// What happens before somebody listens is told to nobody.
void FakeNvmlRaise(unsigned long long type, unsigned long long data) {
  if (is_registered) events.push_back({&the_gpu, type, data, ~0U, ~0U});
}

int nvmlEventSetCreate(void** set) {
  ++sets;
  *set = &events;
  return kSuccess;
}

int nvmlEventSetFree(void* set) {
  if (set != &events) return kInvalidArgument;
  --sets;
  is_registered = false;
  return kSuccess;
}

int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* set) {
  if (device != &the_gpu || set != &events || types != 8) return kInvalidArgument;
  if (Lacks("events")) return kNotSupported;
  is_registered = true;
  return kSuccess;
}

int nvmlEventSetWait_v2(void* set, FakeEvent* event, unsigned timeout_ms) {
  if (set != &events || !is_registered) return kInvalidArgument;
  patience_ms += timeout_ms;
  if (events.empty()) return 10;  // NVML_ERROR_TIMEOUT
  *event = events.front();
  events.pop_front();
  return kSuccess;
}

#endif  // OLD_DRIVER

}  // extern "C"
