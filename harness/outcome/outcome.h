// Outcomes: verdicts, their classes, the kinds of arms and their states. The tables in outcome.cc
// are the one place that names them. Names are read at the inputs (scenario files, verdicts.json,
// the history) and written at the outputs. All other code uses these types.
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
  ExitStatus exit_status;  // of an invocation with this worst verdict
  const char* meaning;
  const char* remedy;  // what to do about it; may be empty
};
std::span<const VerdictInfo> AllVerdicts();
const char* ToString(VerdictKind kind);
ExitStatus ExitStatusOf(VerdictKind kind);
std::vector<std::string> VerdictNames();
std::optional<VerdictKind> FindVerdict(std::string_view name);

// The claim that did not hold, or the reason why there is no answer. The class of a skip names what
// is lacking.
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

  // The class of an Id that needs no further text.
  FailureClass(Id id = kNone) : id_(id) {}  // NOLINT(google-explicit-constructor)
  // The class of a skip: requires:device:cuda for "device:cuda".
  static FailureClass Requires(std::string what);
  // The class that is written "symptom_absent", "requires:device:cuda" or ""; empty: there is none.
  static std::optional<FailureClass> Find(std::string_view text);

  Id id() const { return id_; }
  bool empty() const { return id_ == kNone; }
  const std::string& lacking() const { return lacking_; }  // "device:cuda"; for skips only
  std::string text() const;
  VerdictKind verdict() const;  // the verdict that this class belongs to; kPass for kNone

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
  VerdictKind verdict;  // the verdict that this class belongs to
  // Where the checks of a case have several, the lowest gives the verdict. 0: no check has it.
  int rank;
  const char* name;
  const char* meaning;
  const char* remedy;
};
std::span<const ClassInfo> AllClasses();
// The classes that a check may have, the worst first.
std::vector<ClassInfo> ClassesByRank();
// The names of the classes that a scenario may expect with this verdict. Empty for a skip, which
// can have any number of them.
std::vector<std::string> ClassNames(VerdictKind verdict);

// "fail/symptom_absent", "pass"
std::string OutcomeText(VerdictKind verdict, const FailureClass& failure_class);

// The kinds of arms. kRounding: control with other roundings of its initial weights. kBug: control
// or a twin, with a fault that must make the two differ.
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
