#!/usr/bin/env bash
# run_scenario.sh TRAINWRECK FILE TARGET CORES: runs one scenario as a Bazel test: the JUnit file goes where Bazel looks for it.
set -euo pipefail
output="${TEST_UNDECLARED_OUTPUTS_DIR:-${TEST_TMPDIR:-/tmp}}/run"
status=0
"$1" run "$2" --target "$3" --cores "$4" --history none --output "$output" \
  ${XML_OUTPUT_FILE:+--report "junit=$XML_OUTPUT_FILE"} || status=$?
# "Nothing was executed" is what a scenario shows that expects its skip, and one for a device or a part of programs that there is
# none of here: the JUnit file says so.
expected='"expected_limit": true|"class": "requires:(role|adapter|optimizer|ranks|device):'
if [ "$status" -eq 4 ] && grep -qE "$expected" "$output/verdicts.json"; then status=0; fi
exit "$status"
