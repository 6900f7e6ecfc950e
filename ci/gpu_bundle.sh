#!/usr/bin/env bash
# Builds and packs what a machine with a GPU but without Bazel needs to check this project: ci/gpu_bundle.sh OUT.tar.gz
# There: tar xzf OUT.tar.gz && trainwreck-gpu/gpu_check.sh (its first lines say how to do it in several calls)
set -euo pipefail
out="$(realpath -m "${1:?usage: ci/gpu_bundle.sh OUT.tar.gz}")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source ci/setup.sh

programs=(
  //harness/cli:trainwreck
  //trainer:trainwreck-trainer
  //trainer:trainwreck-trainer-cuda
  //trainer:communicator_nccl_check
  //kernels:kernels_cuda_test
  //kernels:kernels_cuda_large_test
  //kernels:kernels_cuda_benchmark
  //kernels:torch_benchmark
)
"$BAZEL" build --noshow_progress "${programs[@]}" //preload:libtrainwreck_nccl.so
bin="$("$BAZEL" info bazel-bin 2>/dev/null)"
paths=()
for program in "${programs[@]}"; do
  path="${program#//}"
  paths+=("$bin/${path/://}")
done
nccl=
if [ -e "${CUDA_HOME:-}/include/nccl.h" ]; then
  nccl="$(sed -nE 's/^#define NCCL_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' "$CUDA_HOME/include/nccl.h" | paste -sd.)"
fi
torch="$(sed -nE 's/^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ([0-9]+)$/\2/p' "$TORCH_HOME/include/torch/headeronly/version.h" | paste -sd.)"
python3 ci/gpu_bundle.py "$out" --torch "$torch" --nccl "$nccl" --commit "$(git describe --always --dirty)" --scenarios scenarios --shim "$bin/preload/libtrainwreck_nccl.so" "${paths[@]}"
