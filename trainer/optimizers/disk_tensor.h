// Tensors that lie in a file, which is mapped into memory. When memory is short, the kernel writes
// their pages to the disk and drops them.
#pragma once

#include <ATen/core/Tensor.h>

namespace trainwreck {

// Zeros on the CPU, contiguous. The file is in $TMPDIR, else in /var/tmp, and has no name: it goes
// with the tensor, however the process ends. Throws std::runtime_error where the disk has no room
// for it or the folder takes no files.
at::Tensor ZerosOnDisk(at::IntArrayRef sizes, at::ScalarType dtype);

}  // namespace trainwreck
