#pragma once

namespace trainwreck {

// A port of this machine that nobody uses now, for ranks that meet over TCP.
int FreePort();

}  // namespace trainwreck
