// The events of the reference trainer. A definition here also describes the event: --describe lists
// the events of this file, and no others can be reported (EventSink in parts.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/json.h"

namespace trainwreck {

class EventKind {
 public:
  EventKind(std::string name, std::vector<std::string> fields, std::string doc);
  // An event that is described for every target; its fields are free.
  static EventKind OfEveryTarget(std::string name);

  const std::string& name() const { return name_; }
  // Throws std::logic_error when `fields` (a JSON object) has one that the description lacks.
  void Check(const Json& fields) const;

 private:
  explicit EventKind(std::string name) : name_(std::move(name)) {}

  std::string name_;
  std::vector<std::string> fields_;
  bool is_free_ = true;
};

// All events with a description of their own, in the order of the file.
const std::vector<EventInfo>& TrainerEvents();

namespace events {

extern const EventKind kFired;  // of every target: a fault acted
extern const EventKind kNonfiniteBatch;
extern const EventKind kFirstNonfinite;
extern const EventKind kEvidenceSaved;
extern const EventKind kRendezvousFailed;
extern const EventKind kLogged;
extern const EventKind kDesync;
extern const EventKind kRebroadcast;
extern const EventKind kRolledBack;
extern const EventKind kSampleRejected;
extern const EventKind kBatchSkipped;
extern const EventKind kCheckpointSaved;
extern const EventKind kCheckpointFailed;
extern const EventKind kCheckpointDamaged;
extern const EventKind kCheckpointIncomplete;
extern const EventKind kCheckpointMisfit;
extern const EventKind kResumed;
extern const EventKind kOtherTokenizer;
extern const EventKind kUntrained;
extern const EventKind kException;
extern const EventKind kOutOfMemory;
extern const EventKind kMemoryBlocks;
extern const EventKind kMemoryByStage;
extern const EventKind kMemoryMoments;
extern const EventKind kDeviceOpened;
extern const EventKind kPassesDiffer;
extern const EventKind kPassesRecorded;
extern const EventKind kAttentionChosen;
extern const EventKind kDeviceXid;
extern const EventKind kDeviceThrottled;
extern const EventKind kDeviceRowsRemapped;
extern const EventKind kEvaluated;
extern const EventKind kOverlap;
extern const EventKind kTellingColumns;
extern const EventKind kBestRestored;
extern const EventKind kConsolidated;

}  // namespace events
}  // namespace trainwreck
