// One input of the fuzzers: bytes that claim to be a scenario file.
#pragma once

#include <string>

namespace trainwreck {

// Reads and checks `text`; aborts with a message when what comes back is no fit answer.
void FuzzScenario(const std::string& text);

}  // namespace trainwreck
