#!/usr/bin/env bash
# Builds and packs what a machine with a GPU but without Bazel needs to check this project: ci/gpu_bundle.sh OUT.tar.gz
# There: tar xzf OUT.tar.gz && trainwreck-gpu/gpu_check.sh
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
  //kernels:kernels_benchmark
  //kernels:kernels_cuda_benchmark
  //kernels:torch_benchmark
)
"$BAZEL" build --noshow_progress "${programs[@]}"
bin="$("$BAZEL" info bazel-bin 2>/dev/null)"
paths=()
for program in "${programs[@]}"; do
  path="${program#//}"
  paths+=("$bin/${path/://}")
done
python3 ci/gpu_bundle.py "$out" --commit "$(git describe --always --dirty)" --scenarios scenarios "${paths[@]}"
