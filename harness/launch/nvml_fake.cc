// A libnvidia-ml.so for tests of the harness: an H200 with 100 GiB free, an A100 with 39 GiB free,
// and a third GPU that does not tell of its memory. FAKE_NVML=driver: nvmlInit fails.
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3, kDriverNotLoaded = 9;
constexpr unsigned long long kGiB = 1ULL << 30;
struct Gpu {
  const char *name, *uuid;
  unsigned long long free_bytes;
};
Gpu the_gpus[] = {{"NVIDIA H200", "GPU-5f0b", 100 * kGiB},
                  {"NVIDIA A100", "GPU-7c21", 39 * kGiB},
                  {"NVIDIA H200", "GPU-99aa", 0}};

struct Memory {
  unsigned long long total, free, used;
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* lacking = std::getenv("FAKE_NVML");
  return lacking != nullptr && std::strcmp(lacking, "driver") == 0 ? kDriverNotLoaded : kSuccess;
}

int nvmlShutdown() { return kSuccess; }

int nvmlDeviceGetCount_v2(unsigned* gpus) {
  *gpus = 3;
  return kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= 3) return kInvalidArgument;
  *device = &the_gpus[index];
  return kSuccess;
}

int nvmlDeviceGetName(void* device, char* text, unsigned bytes) {
  std::strncpy(text, static_cast<Gpu*>(device)->name, bytes);
  return kSuccess;
}

int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes) {
  std::strncpy(text, static_cast<Gpu*>(device)->uuid, bytes);
  return kSuccess;
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  const unsigned long long free = static_cast<Gpu*>(device)->free_bytes;
  if (free == 0) return kNotSupported;
  *memory = {.total = 141 * kGiB, .free = free, .used = 141 * kGiB - free};
  return kSuccess;
}

}  // extern "C"
