#!/usr/bin/env bash
# run_scenario.sh FILE TARGET: runs one scenario as a Bazel test: the JUnit file goes where Bazel looks for it.
set -euo pipefail
exec harness/cli/trainwreck run "$1" \
  --target "$2" --history none \
  --output "${TEST_UNDECLARED_OUTPUTS_DIR:-${TEST_TMPDIR:-/tmp}}/run" \
  ${XML_OUTPUT_FILE:+--report "junit=$XML_OUTPUT_FILE"}
