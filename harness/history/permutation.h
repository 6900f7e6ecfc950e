// Whether many margins of few seeds moved, all tested at once. Under "nothing changed" the seeds of
// both sides are exchangeable, so every way to deal them out to two sides is as likely as the one
// that was seen; and since all margins of a seed are dealt out together, the largest statistic
// over all margins is known in each deal. A margin differs when few deals have any margin that is
// as far out. So the chance of a single false alarm is bounded for any shape of the noise and any
// dependence between the margins, and hundreds of margins cost no more than the largest of them:
// with five seeds a side there are 252 deals, and a shift that stands out has p = 2/252, not 300
// times that.
//
// P. H. Westfall and S. S. Young (1993), the step-down maxT procedure.
#pragma once

#include <utility>
#include <vector>

namespace trainwreck {

using Samples = std::pair<std::vector<double>, std::vector<double>>;  // A's seeds, B's seeds

// By margin, the p-value that holds for all of them together. No NaN, no empty side; infinite
// values count as far out. Margins with other numbers of seeds are tested apart, and the p-values
// of each such group are multiplied by the number of groups in which `level` can be reached.
std::vector<double> FamilywiseP(const std::vector<Samples>& margins, double level);

// Two-sided, of a shift, by Student's t with a pooled deviation: what normal noise would give.
double StudentP(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace trainwreck
