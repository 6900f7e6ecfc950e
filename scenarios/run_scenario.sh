#!/usr/bin/env bash
# run_scenario.sh TRAINWRECK FILE TARGET: runs one scenario as a Bazel test: the JUnit file goes where Bazel looks for it.
set -euo pipefail
exec "$1" run "$2" --target "$3" --history none \
  --output "${TEST_UNDECLARED_OUTPUTS_DIR:-${TEST_TMPDIR:-/tmp}}/run" \
  ${XML_OUTPUT_FILE:+--report "junit=$XML_OUTPUT_FILE"}
