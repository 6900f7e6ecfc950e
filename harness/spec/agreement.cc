#include "harness/spec/agreement.h"

namespace trainwreck {

std::string AgreementOn(const std::string& signal, const std::string& within,
                        const TargetDescription& target) {
  const SignalInfo* info = target.FindSignal(signal.substr(0, signal.find_first_of("{@[")));
  const bool is_exact = info != nullptr && info->exact;
  if (within == "bitwise") {
    return is_exact ? "always " + signal + " == control." + signal
                    : "always distance(" + signal + ") == 0";
  }
  if (within == "rounding")
    return "always distance(" + signal + ") <= 8 * rounding(" + signal + ")";
  return "always distance(" + signal + ") <= " + within + " * abs(control." + signal + ")";
}

}  // namespace trainwreck
