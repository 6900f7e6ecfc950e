// Files that only this user can have written. In a shared folder, such as /tmp, a file of the right
// name may belong to another user.
#pragma once

#include <string>

namespace trainwreck {

// Whether the file or folder belongs to this user, and no other user may write to it. A link must
// belong to this user too. False also when there is none.
bool IsOursAlone(const std::string& path);

// The text of a private file; empty when it is not there, cannot be read or is not private.
std::string ReadOwnFile(const std::string& path);

}  // namespace trainwreck
