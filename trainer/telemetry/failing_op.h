// Which operation of LibTorch has thrown. On a GPU that is the one at fault only where launches
// block (CUDA_LAUNCH_BLOCKING=1): else an error of a kernel comes out of a later operation.
#pragma once

#include <string>

namespace trainwreck {

// Watches all operations of this process from now on, in all threads: a few percent of a step of a
// small model.
void WatchOperations();

struct FailingOp {
  std::string op;      // the innermost one, "aten::index_select"; empty: none has thrown
  std::string within;  // what the program called, "aten::embedding", or the node of the backward
                       // pass, "EmbeddingBackward0"
};

// Those that the last error came through. Empty before WatchOperations.
FailingOp LastFailingOp();

}  // namespace trainwreck
