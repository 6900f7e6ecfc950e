// How a verb writes its verdicts to standard output, as the options of all verbs ask for it.
#pragma once

#include <unistd.h>

#include "harness/report/console.h"
#include "harness/session/options.h"

namespace trainwreck {

inline ConsoleOptions ConsoleOptionsOf(const CommonOptions& common) {
  const ColorMode color = common.color == UseColor::kAlways  ? ColorMode::kAlways
                          : common.color == UseColor::kNever ? ColorMode::kNever
                                                             : ColorMode::kAuto;
  ConsoleOptions options = ConsoleOptions::ForStream(STDOUT_FILENO, color);
  options.verbose = common.verbose;
  return options;
}

}  // namespace trainwreck
