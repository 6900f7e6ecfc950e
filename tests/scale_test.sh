#!/usr/bin/env bash
set -euo pipefail
python3 tests/scale.py harness/cli/trainwreck harness/launch/fake_target runs 200 "$TEST_TMPDIR/runs"
python3 tests/scale.py harness/cli/trainwreck harness/launch/fake_target ranks 64 "$TEST_TMPDIR/ranks"
python3 tests/scale.py harness/cli/trainwreck harness/launch/fake_target shards 40 "$TEST_TMPDIR/shards"
