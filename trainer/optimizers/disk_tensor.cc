#include "trainer/optimizers/disk_tensor.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

namespace trainwreck {
namespace {

std::string Folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != 0 ? folder : "/var/tmp";
}

[[noreturn]] void Fail(std::int64_t bytes, int error) {
  throw std::runtime_error("cannot keep a tensor of " + std::to_string(bytes) + " bytes in " +
                           Folder() + ": " + std::generic_category().message(error) +
                           " (TMPDIR names another folder)");
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Of a file that has no name any more.
int OpenNameless() {
  std::string path = Folder() + "/trainwreck-state-XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) unlink(path.c_str());
  return fd;
}

}  // namespace

at::Tensor ZerosOnDisk(at::IntArrayRef sizes, at::ScalarType dtype) {
  std::int64_t bytes = static_cast<std::int64_t>(at::elementSize(dtype));
  for (const std::int64_t size : sizes) bytes *= size;
  if (bytes == 0) return at::zeros(sizes, dtype);  // nothing can be mapped
  const FileDescriptor file(OpenNameless());
  if (file.get() < 0) Fail(bytes, errno);
  // Now, or a disk that is full would end the process by SIGBUS when a page is first written.
  if (const int error = posix_fallocate(file.get(), 0, bytes); error != 0) Fail(bytes, error);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) Fail(bytes, errno);
  return at::from_blob(
      data, sizes, [bytes](void* mapped) { munmap(mapped, bytes); },
      at::TensorOptions().dtype(dtype));
}

}  // namespace trainwreck
