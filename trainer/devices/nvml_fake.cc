// A libnvidia-ml.so for tests: one GPU at 00000000:3B:00.0 with 61 C, 1980 MHz and 3 memory errors.
// FAKE_NVML says what it lacks: "driver" (nvmlInit fails), "ecc" (as on a GPU without ECC memory).
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6,
              kDriverNotLoaded = 9;
int the_gpu = 0;
int uses = 0;

bool Lacks(const char* what) {
  const char* lacking = std::getenv("FAKE_NVML");
  return lacking != nullptr && std::strcmp(lacking, what) == 0;
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
  // Corrected ones are daily weather; those since the last power-up would never go away.
  *count = type == 1 && counter == 0 ? 3 : 4711;
  return kSuccess;
}

}  // extern "C"
