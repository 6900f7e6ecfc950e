// The folder of one run: its files and its size.
#pragma once

#include <cstdint>
#include <string>

namespace trainwreck {

class RunFolder {
 public:
  RunFolder() = default;
  // Creates it with its parents. Files of an earlier run of the same id are removed.
  // Throws std::system_error.
  explicit RunFolder(std::string path);

  const std::string& path() const { return path_; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  std::string plan(const std::string& phase, int attempt) const;
  std::string rendezvous(const std::string& phase, int attempt) const;
  std::string stdout_of(int rank) const;
  std::string stderr_of(int rank) const;

  std::int64_t bytes() const;       // on the disk, of everything in it
  void TruncateLargeFiles() const;  // after a run that wrote too much: to 1 MiB each; never throws
  bool DiskIsFull() const;

 private:
  std::string path_;
};

// Creates or replaces a file. Throws std::system_error.
void WriteFile(const std::string& path, const std::string& text);

// The last bytes of a file from `begin` on, so many at most. Empty where there is no file or
// something else in its place, which is not waited for.
std::string TailOf(const std::string& path, std::int64_t begin, std::int64_t bytes);

// The last non-empty lines of a file from `begin` on: at most three, together at most 2 KiB, as
// valid UTF-8. A backtrace after them and PyTorch's advice about errors of CUDA are left out: they
// do not give the reason.
std::string LastWords(const std::string& path, std::int64_t begin);

}  // namespace trainwreck
