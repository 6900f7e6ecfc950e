// A file that somebody else appends to.
#pragma once

#include <cstdint>
#include <string>

namespace trainwreck {

class GrowingFile {
 public:
  // With `skip_existing`, only what is written from now on is read.
  GrowingFile(std::string path, bool skip_existing);
  ~GrowingFile();
  GrowingFile(GrowingFile&& other) noexcept;
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // Appends what is new to `bytes`, some MiB at once; false when there was nothing. When the file
  // was begun anew since (another one, or shorter, or other bytes before the place that was read),
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
