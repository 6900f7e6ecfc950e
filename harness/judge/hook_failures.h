// Hooks that failed in a run. Such a hook says so once, in the event `hook_failed`, and is silent
// from then on: what it records is missing, and the faults that act in it do not act. Private to
// this package.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

struct HookFailure {
  std::string hook;
  std::string why;
  int step = -1;  // -1: before the first
  int rank = 0;
};

std::vector<HookFailure> HookFailuresIn(const RunTrace& trace);

std::string ToString(const HookFailure& failure);  // "hook 'loss' failed at step 3: KeyError('x')"

// The failure that kept `fault` from acting: of a hook that it acts in, on one of its ranks, in a
// run without a `fired` event of it. Empty: there is none, so a fault that has not fired is to
// blame itself.
std::optional<HookFailure> WhatSilenced(const InjectedFault& fault, const RunTrace& trace,
                                        const TargetDescription& target);

// "fault 'hot' could not act: hook 'faults' failed at step 3: KeyError('x')"
std::string SentenceOf(const InjectedFault& fault, const HookFailure& failure);

// One sentence for each hook and reason, with the first run that has it.
std::vector<std::string> RemarksOnHooks(const CaseResults& results);

}  // namespace trainwreck
