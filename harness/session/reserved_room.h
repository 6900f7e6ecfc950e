// Disk space that an invocation reserves for its reports: even if runs fill the disk, the verdicts
// are not lost. The file has no name, so it disappears however the process ends.
#pragma once

#include <cstdint>
#include <string>

namespace trainwreck {

class ReservedRoom {
 public:
  // Throws ConfigurationError when the disk has too little space.
  ReservedRoom(const std::string& folder, std::int64_t bytes);
  ~ReservedRoom() { Release(); }
  ReservedRoom(const ReservedRoom&) = delete;
  ReservedRoom& operator=(const ReservedRoom&) = delete;

  void Release();  // just before the space is used

 private:
  int fd_ = -1;
};

}  // namespace trainwreck
