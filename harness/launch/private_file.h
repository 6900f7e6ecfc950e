// Files that nobody but this user can have written. In a folder that is shared, /tmp say, a file of
// the right name may be a stranger's.
#pragma once

#include <string>

namespace trainwreck {

// A file or folder that belongs to this user (as a link to it does, if it is one) and that no other
// user may write to. False also when there is none.
bool IsOursAlone(const std::string& path);

// Empty when it is not there, cannot be read or is not ours alone.
std::string ReadOwnFile(const std::string& path);

}  // namespace trainwreck
