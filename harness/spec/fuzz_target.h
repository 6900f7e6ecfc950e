// One input of the fuzzers: bytes that claim to be a scenario file.
#pragma once

#include <string>

namespace trainwreck {

// Reads and checks `text`; aborts with a message when the result breaks a promise.
void FuzzScenario(const std::string& text);

}  // namespace trainwreck
