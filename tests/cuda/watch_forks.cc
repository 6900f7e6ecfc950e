// For LD_PRELOAD: counts the CUDA calls of a process, and says with each fork how many came before
// it. A line per event in the file that WATCH_FORKS names: "fork 0 -" or "fork 2 cudaGetDevice",
// "call cudaGetDevice".
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

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

bool IsOfTheProgram(const void* code) {
  Dl_info caller, program;
  return dladdr(code, &caller) != 0 &&
         dladdr(reinterpret_cast<const void*>(getauxval(AT_ENTRY)), &program) != 0 &&
         caller.dli_fbase == program.dli_fbase;
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

// The runtime that is linked into the program itself, for our own kernels: its calls cannot be seen
// from here, but the first one looks for the driver. (Libraries may load the driver as they start,
// which does no harm.)
void* dlopen(const char* path, int flags) {
  if (path != nullptr && std::strncmp(path, "libcuda.so", 10) == 0 &&
      IsOfTheProgram(__builtin_return_address(0))) {
    if (calls++ == 0) first = "libcuda.so";
    Say("call", calls, "libcuda.so");
  }
  return reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"))(path, flags);
}

}  // extern "C"
