// On a shared file system a file may be seen longer than the bytes that have come: zeros stand in
// place of the rest, for a while.
#pragma once

#include <chrono>

namespace trainwreck {

inline constexpr std::chrono::seconds kLateBytes(2);        // after which zeros are what is there
inline constexpr std::chrono::milliseconds kLatePause(20);  // between two looks

}  // namespace trainwreck
