// trainwreck rank -- COMMAND: starts one rank on the machine that a launcher has put it on.
#include <string>
#include <vector>

#include "harness/cli/verb.h"
#include "harness/targets/rank_guard.h"

namespace trainwreck {
namespace {

struct RankOptions {
  CommonOptions common;
  std::vector<std::string> command;
};

int RankVerb(const RankOptions& options) { return RunRankGuard(options.command); }

void Declare(VerbArguments& arguments, RankOptions& options) {
  arguments.Rest(options.command);
  arguments.Footer(
      "For the command of a target, as in: srun -N 4 trainwreck rank -- python3 train.py");
  arguments.Common(options.common);
}

const VerbRegistration registration("rank", "Start and guard one rank of a run over many machines",
                                    kKeeping, Declare, RankVerb);

}  // namespace
}  // namespace trainwreck
