#!/usr/bin/env bash
set -euo pipefail
script="$(readlink -f "$0")"  # out of Bazel's runfiles, into the checkout
root="$(dirname "$(dirname "$script")")"
exec python3 tests/hacking_test.py "$root" harness/cli/trainwreck trainer/trainwreck-trainer
