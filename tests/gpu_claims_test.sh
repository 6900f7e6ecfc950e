#!/usr/bin/env bash
set -euo pipefail
script="$(readlink -f "$0")"  # out of Bazel's runfiles, into the checkout
exec python3 tests/gpu_claims_test.py "$(dirname "$(dirname "$script")")"
