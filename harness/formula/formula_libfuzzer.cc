// Entry point for libFuzzer, for as long as one likes (a machine with clang's runtime):
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I.
//   harness/formula/formula_libfuzzer.cc
//     harness/formula/fuzz_target.cc harness/formula/test_support.cc <the sources of
//     //harness/formula and
//     //harness/protocol> -lfmt -lgtest -o formula_fuzzer
// formula_fuzz_test.cc is the short, deterministic run that the test suite makes.
#include <cstddef>
#include <cstdint>

#include "harness/formula/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  trainwreck::formula::testing::FuzzOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
