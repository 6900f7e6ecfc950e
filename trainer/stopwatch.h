// How long parts of a step take: Stopwatch watch(scalars.data_s);
#pragma once

#include <chrono>

namespace trainwreck {

// Adds the seconds until its end to `total_s`.
class Stopwatch {
 public:
  explicit Stopwatch(double& total_s)
      : total_s_(total_s), began_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    total_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_s_;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace trainwreck
