#!/usr/bin/env bash
# Checks everything that needs a GPU, from a bundle of ci/gpu_bundle.sh, and writes one report: gpu_check.sh [options]
#   --report FILE   default: gpu.md
#   --python PATH   a Python whose torch is to be used; default: TORCH_HOME, else python3
# Without a GPU it runs the same checks on the CPU and says what was not verified. Exits 1 when a check failed.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu_check.py" "$@"
