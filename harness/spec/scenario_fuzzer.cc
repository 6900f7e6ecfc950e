// Entry point for libFuzzer: clang++ -fsanitize=fuzzer,address with this file, fuzz_target.cc and
// the sources of //harness/spec, //harness/formula and //harness/protocol; run it from the
// repository's root.
#include <cstddef>
#include <cstdint>
#include <string>

#include "harness/spec/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trainwreck::FuzzScenario(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
