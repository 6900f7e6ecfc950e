// The columns of a matrix: control, fault and reference runs of each case, made now or kept by an
// earlier matrix.
#pragma once

#include <string>
#include <vector>

#include "harness/campaign/batches.h"
#include "harness/matrix/matrix.h"
#include "harness/session/session.h"

namespace trainwreck {

struct MatrixRequest {
  int seeds = 0;          // 0: as the scenarios say
  int control_seeds = 0;  // 0: as many as of the fault
  int cores = 0;
  bool keep = false;  // the runs, so that ReadKeptMatrix finds them
  bool exec = false;
};

// The runs of a case, with everything recorded that any symptom reads.
Batch MatrixRunsOf(const Case& one, const std::vector<std::string>& record,
                   const MatrixRequest& request);

// Adds the cases that were skipped, with the reason, and all symptoms; gives the other cases.
std::vector<Case> StartMatrix(const std::vector<Case>& cases, Matrix& matrix);

// Adds a column for each case. A control run that does not complete is trouble.
BatchesEnd RunMatrix(const std::vector<Case>& cases, const MatrixRequest& request,
                     const Session& session, const std::string& output, Matrix& matrix);

// The same from the folder of a matrix that kept its runs; a case without control runs there is
// skipped.
void ReadKeptMatrix(const std::vector<Case>& cases, const std::string& folder,
                    const TargetDescription& target, Matrix& matrix);

}  // namespace trainwreck
