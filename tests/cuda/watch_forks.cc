// For LD_PRELOAD: counts the CUDA calls of a process, and says with each fork how many came before
// it. A line per event in the file that WATCH_FORKS names: "fork 0 -" or "fork 2 cudaGetDevice",
// "call cudaGetDevice".
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

int calls = 0;
const char* first = "-";

void Say(const char* event, int count, const char* name) {
  const char* path = std::getenv("WATCH_FORKS");
  if (path == nullptr) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  char line[128];
  const int length = std::snprintf(line, sizeof line, "%s %d %s\n", event, count, name);
  if (write(fd, line, length) != length) std::abort();
  close(fd);
}

template <typename... Arguments>
int Forward(const char* name, Arguments... arguments) {
  if (calls++ == 0) first = name;
  Say("call", calls, name);
  const auto real = reinterpret_cast<int (*)(Arguments...)>(dlsym(RTLD_NEXT, name));
  return real(arguments...);
}

}  // namespace

extern "C" {

pid_t fork() {
  Say("fork", calls, first);
  return reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "fork"))();
}

// What LibTorch asks first, whatever it is going to do.
int cudaGetDeviceCount(int* count) { return Forward("cudaGetDeviceCount", count); }
int cudaGetDevice(int* device) { return Forward("cudaGetDevice", device); }
int cudaSetDevice(int device) { return Forward("cudaSetDevice", device); }
int cudaFree(void* memory) { return Forward("cudaFree", memory); }

}  // extern "C"
