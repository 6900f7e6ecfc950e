// A file to which another process appends.
#pragma once

#include <cstdint>
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

  // Appends new bytes to `bytes`, some MiB at once; false when there were none. When the file was
  // started again (it is another file, or shorter, or has other bytes before the current place),
  // `begun_anew` is set and reading starts at its beginning.
  bool Read(std::string& bytes, bool& begun_anew);
  const std::string& path() const { return path_; }

 private:
  void Remember();  // the bytes before `offset_`
  bool IsSameFile() const;

  std::string path_;
  int fd_ = -1;
  std::int64_t offset_ = 0;
  std::string before_;  // the last bytes before `offset_`
};

}  // namespace trainwreck
