#!/usr/bin/env bash
# Usage: scale_test.sh RUNS RANKS SHARDS
set -euo pipefail
python3 tests/scale.py harness/cli/trainwreck harness/launch/fake_target runs "$1" "$TEST_TMPDIR/runs"
python3 tests/scale.py harness/cli/trainwreck harness/launch/fake_target ranks "$2" "$TEST_TMPDIR/ranks"
python3 tests/scale.py harness/cli/trainwreck harness/launch/fake_target shards "$3" "$TEST_TMPDIR/shards"
