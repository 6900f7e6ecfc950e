// A file to which another process appends.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace trainwreck {

class GrowingFile {
 public:
  // With `skip_existing`, only bytes that are written from now on are read.
  GrowingFile(std::string path, bool skip_existing);
  ~GrowingFile();
  GrowingFile(GrowingFile&& other) noexcept;
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Of a text there should be none: a network file system may show them for a moment in place of
  // new bytes. So they may be left to a later call, or waited for; after 2 s they are bytes.
  enum class Zeros { kAreBytes, kAreLeft, kAreAwaited };

  // Appends new bytes to `bytes`, some MiB at once; false when there were none. When the file was
  // started again (it is another file, or shorter, or has other bytes before the current place),
  // `begun_anew` is set and reading starts at its beginning.
  bool Read(std::string& bytes, bool& begun_anew, Zeros zeros = Zeros::kAreBytes);
  const std::string& path() const { return path_; }

 private:
  void Remember();  // the bytes before `offset_`
  bool IsSameFile() const;

  std::string path_;
  int fd_ = -1;
  std::int64_t offset_ = 0;
  std::string before_;  // the last bytes before `offset_`
  std::optional<std::chrono::steady_clock::time_point> zeros_since_;  // at `offset_`
};

}  // namespace trainwreck
