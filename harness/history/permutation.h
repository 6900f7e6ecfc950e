// Whether many margins of few seeds moved, all tested at once. If nothing changed, the seeds of
// both sides are exchangeable: every way to divide them into two sides (a deal) is as likely as the
// one that was seen. All margins of a seed are dealt together, so each deal has a largest statistic
// over all margins. A margin differs when few deals have any margin that is as far out. So the
// chance of a single false alarm is bounded, for any shape of the noise and any dependence between
// the margins. Hundreds of margins cost no more power than the largest of them: with five seeds on
// each side there are 252 deals, and a clear shift has p = 2/252, not 300 times that.
//
// P. H. Westfall and S. S. Young (1993), the step-down maxT procedure.
#pragma once

#include <utility>
#include <vector>

namespace trainwreck {

using Samples = std::pair<std::vector<double>, std::vector<double>>;  // A's seeds, B's seeds

// The p-value of each margin, corrected for all margins together. The samples have no NaN and no
// empty side; infinite values count as far out. Margins with other numbers of seeds are tested
// apart, and each group's p-values are multiplied by the number of groups in which `level` can be
// reached.
std::vector<double> FamilywiseP(const std::vector<Samples>& margins, double level);

// The two-sided p-value of a shift by Student's t with a pooled deviation, as for normal noise.
double StudentP(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace trainwreck
