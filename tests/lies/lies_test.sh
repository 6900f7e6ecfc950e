#!/usr/bin/env bash
# Runs lies_test.py with the programs of the build.
set -euo pipefail
exec python3 tests/lies/lies_test.py --trainwreck harness/cli/trainwreck --liar tests/lies/liar "$@"
