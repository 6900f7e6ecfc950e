// Room on the disk that an invocation keeps for its reports: runs may fill the disk, but not to the
// point where the verdicts are lost. It has no name, so it is gone whatever ends us.
#pragma once

#include <cstdint>
#include <string>

namespace trainwreck {

class ReservedRoom {
 public:
  // Throws ConfigurationError when there is not that much.
  ReservedRoom(const std::string& folder, std::int64_t bytes);
  ~ReservedRoom() { Release(); }
  ReservedRoom(const ReservedRoom&) = delete;
  ReservedRoom& operator=(const ReservedRoom&) = delete;

  void Release();  // just before the room is used

 private:
  int fd_ = -1;
};

}  // namespace trainwreck
