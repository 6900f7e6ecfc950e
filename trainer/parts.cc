#include "trainer/parts.h"

namespace trainwreck {
namespace {

thread_local std::optional<int> ahead_step;

}  // namespace

int StepOfThread(const Clock& clock) { return ahead_step ? *ahead_step : clock.step; }

AheadScope::AheadScope(int step) { ahead_step = step; }
AheadScope::~AheadScope() { ahead_step.reset(); }

}  // namespace trainwreck
