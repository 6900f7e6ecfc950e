// How things come out: verdicts, their classes, the kinds of arms and their states. The tables in
// outcome.cc are the one place that names them. Names are read where they come in (scenario files,
// verdicts.json, the history) and written where they go out; in between there are only these types.
//
//   if (verdict.failure_class == FailureClass::kUndecided) ...
//   json["class"] = verdict.failure_class.text();
#pragma once

#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/outcome/exit_status.h"

namespace trainwreck {

enum class VerdictKind { kPass, kFail, kInconclusive, kError, kSkip };

struct VerdictInfo {
  VerdictKind id;
  const char* name;
  ExitStatus exit_status;  // of an invocation whose worst verdict it is
  const char* meaning;
  const char* remedy;  // what to do about it; may be empty
};
std::span<const VerdictInfo> AllVerdicts();
const char* ToString(VerdictKind kind);
ExitStatus ExitStatusOf(VerdictKind kind);
std::vector<std::string> VerdictNames();
std::optional<VerdictKind> FindVerdict(std::string_view name);

// Which claim did not hold, or why nothing could be said. A skip's class has what it lacks in it.
class FailureClass {
 public:
  enum Id {
    kNone,  // as claimed
    kControlUnhealthy,
    kSymptomInControl,
    kSymptomAbsent,
    kSymptomWeak,
    kFaultNotFired,
    kRemedyIneffective,
    kRemedyCostly,
    kDecoyEffective,
    kInvariantBroken,
    kTwinsDiffer,
    kBugUnnoticed,
    kUnexpectedPass,
    kNondeterministic,
    kUndecided,
    kTooFewSeeds,
    kInfrastructure,
    kTimeout,
    kCrash,
    kIncomplete,
    kLeak,
    kRequires,
    kCount,
  };

  // An Id is the whole of its class.
  FailureClass(Id id = kNone) : id_(id) {}  // NOLINT(google-explicit-constructor)
  // "device:cuda": the class requires:device:cuda.
  static FailureClass Requires(std::string what);
  // Of "symptom_absent", "requires:device:cuda" or ""; empty: there is no such class.
  static std::optional<FailureClass> Find(std::string_view text);

  Id id() const { return id_; }
  bool empty() const { return id_ == kNone; }
  const std::string& lacking() const { return lacking_; }  // "device:cuda"; of a skip alone
  std::string text() const;
  VerdictKind verdict() const;  // that it is a class of; pass where it is none

  bool operator==(const FailureClass& other) const = default;
  bool operator==(Id id) const { return id_ == id; }
  bool operator<(const FailureClass& other) const { return text() < other.text(); }

 private:
  Id id_ = kNone;
  std::string lacking_;
};
std::ostream& operator<<(std::ostream& out, const FailureClass& failure_class);

struct ClassInfo {
  FailureClass::Id id;
  VerdictKind verdict;  // that it is a class of
  // Where the checks of a case have several, the lowest gives the verdict. 0: no check has it.
  int rank;
  const char* name;
  const char* meaning;
  const char* remedy;
};
std::span<const ClassInfo> AllClasses();
// Those that a check may have, the worst first.
std::vector<ClassInfo> ClassesByRank();
// That a scenario may expect with this verdict; a skip has any number of them, and none here.
std::vector<std::string> ClassNames(VerdictKind verdict);

// "fail/symptom_absent", "pass"
std::string OutcomeText(VerdictKind verdict, const FailureClass& failure_class);

// kRounding: control with other roundings of its initial weights. kBug: control and each twin with
// a fault that must make them differ.
enum class ArmKind { kControl, kFault, kRemedy, kDecoy, kReference, kTwin, kRounding, kBug };
const char* ToString(ArmKind kind);
std::optional<ArmKind> FindArmKind(std::string_view name);

// The worst of an arm's checks; the higher, the worse. An undo is not run.
enum class ArmStatus { kOk, kUndecided, kFail, kError, kUndo };
const char* ToString(ArmStatus status);
std::optional<ArmStatus> FindArmStatus(std::string_view name);

// Checks that an arm may have besides those that its scenario names.
inline constexpr char kEndCheck[] = "end";  // it came to the end that it must come to
inline constexpr char kFiredCheck[] = "fired";
inline constexpr char kSeedsCheck[] = "seeds";  // enough of them could be judged
inline constexpr char kSignalsSoundCheck[] = "signals_sound";

struct ExitInfo {
  ExitStatus status;
  const char* meaning;
};
std::span<const ExitInfo> AllExitStatuses();

}  // namespace trainwreck
