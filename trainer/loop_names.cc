// The names of stages and ends, as traces have them.
#include "trainer/loop.h"

namespace trainwreck {

const char* ToString(Stage stage) {
  switch (stage) {
    case Stage::kBuild:
      return "build";
    case Stage::kRestore:
      return "restore";
    case Stage::kData:
      return "data";
    case Stage::kForward:
      return "forward";
    case Stage::kBackward:
      return "backward";
    case Stage::kReduce:
      return "reduce";
    case Stage::kUpdate:
      return "update";
    case Stage::kLog:
      return "log";
    case Stage::kEvaluate:
      return "evaluate";
    case Stage::kCheckpoint:
      return "checkpoint";
  }
  return "";
}

const char* ToString(EndReason reason) {
  switch (reason) {
    case EndReason::kCompleted:
      return "completed";
    case EndReason::kPhaseDone:
      return "phase_done";
    case EndReason::kStoppedEarly:
      return "stopped_early";
  }
  return "";
}

}  // namespace trainwreck
