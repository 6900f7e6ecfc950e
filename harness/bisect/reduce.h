// Delta debugging (Zeller and Hildebrandt's ddmin): from a set of changes that together flip a
// test, finds a subset that still flips it and from which no change can be left out.
#pragma once

#include <functional>
#include <set>

namespace trainwreck {

using ChangeSet = std::set<int>;

// The subset of `all`. `flips` says whether the test gives the other answer with these changes;
// with all of them it must. It must answer no when unsure: then a change too many may stay in, but
// never one too few.
ChangeSet Reduce(const ChangeSet& all, const std::function<bool(const ChangeSet&)>& flips);

}  // namespace trainwreck
