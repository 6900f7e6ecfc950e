// Tests of the trainer's group of ranks while NCCL's calls are broken by the library of preload/.
// One rank suffices. They are linked into two programs: communicator_nccl_check has a GPU and NCCL,
// broken_nccl_test has the CPU and a library in NCCL's place. Each defines these functions.
#pragma once

#include <memory>
#include <string>

#include "trainer/devices/device.h"
#include "trainer/parts.h"

namespace trainwreck {

struct OneRank {
  std::unique_ptr<Device> device;  // null: the CPU
  std::unique_ptr<Communicator> communicator;
};

std::string NcclShim();            // the library of preload/; empty: there is none here
std::string WhyNothingIsBroken();  // a reason to skip these tests; empty: there is none
OneRank OpenOneRank(const GroupOptions& options);

}  // namespace trainwreck
