// A port for ranks that meet over TCP.
#pragma once

namespace trainwreck {

// Of this machine, and nobody uses it now.
int FreePort();

}  // namespace trainwreck
