#!/usr/bin/env bash
# Runs mutations_test.py with the programs of the build; for others call mutations_test.py itself.
set -euo pipefail
exec python3 tests/mutations_test.py \
  --trainwreck harness/cli/trainwreck \
  --trainer trainer/trainwreck-trainer \
  --fake-target harness/launch/fake_target \
  "$@"
