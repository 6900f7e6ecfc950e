// Of the training loop (loop.h): audits of an update, and of passes that are made twice.
#include <string>
#include <vector>

#include "trainer/loop.h"

namespace trainwreck {

void TrainingLoop::RepeatPasses(const std::vector<Batch>& batches,
                                const std::vector<double>& counts) {
  const bool votes = recipe_.audit_on_difference == OnDifference::kVote;
  const auto difference = repetition_->Compare(
      now_.loss, [&] { return ForwardBackward(batches, counts, /*hook=*/nullptr); }, votes);
  if (!difference) return;
  const bool stops =
      recipe_.audit_on_difference == OnDifference::kStop || (votes && !difference->is_decided);
  events_.Report(events::kPassesDiffer, {{"parameters", difference->parameters},
                                         {"loss", EncodeNumber(difference->first_loss)},
                                         {"loss_again", EncodeNumber(difference->second_loss)},
                                         {"action", stops   ? "stop"
                                                    : votes ? "vote"
                                                            : "report"}});
  if (stops) {
    throw GuardStop("the passes of this step, made " +
                    std::string(votes ? "three times" : "twice") +
                    ", do not agree: the machine computes wrong, or in no fixed order");
  }
}

void TrainingLoop::AuditedUpdate() {
  DividedParameters* const divided = parts_.divided_parameters.get();
  {
    const DividedParameters::Whole whole(divided);
    coverage_.BeforeUpdate(parameters_, gradients_, recipe_.model.trainable);
  }
  Update();
  coverage_due_ = now_.lr == 0;  // nothing could move
  if (coverage_due_) return;
  const DividedParameters::Whole whole(divided);
  const CoverageGaps gaps = coverage_.AfterUpdate();
  const auto report = [this](const std::vector<std::string>& names, const char* why) {
    if (!names.empty()) events_.Report(events::kUntrained, {{"parameters", names}, {"why", why}});
  };
  report(gaps.without_gradient, "no gradient");
  report(gaps.without_update, "no update");
  const auto& first = gaps.without_gradient.empty() ? gaps.without_update : gaps.without_gradient;
  if (recipe_.audit_coverage == OnGaps::kStop && !first.empty()) {
    throw GuardStop("the step does not train " + first.front() + " and maybe others");
  }
}

}  // namespace trainwreck
