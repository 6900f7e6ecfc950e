// Delta debugging (Zeller and Hildebrandt's ddmin): of a set of changes that together flip a test,
// a subset that still does and of which nothing can be left out.
#pragma once

#include <functional>
#include <set>

namespace trainwreck {

using ChangeSet = std::set<int>;

// `flips` says whether the test gives the other answer with these changes; of all of them it does.
// Unsure counts as no: then a change too many stays in, never one too few.
ChangeSet Reduce(const ChangeSet& all, const std::function<bool(const ChangeSet&)>& flips);

}  // namespace trainwreck
