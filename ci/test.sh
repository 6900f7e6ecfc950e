#!/usr/bin/env bash
# Sets up, builds everything and runs all tests: ci/test.sh [bazel test options]
# Ends with a line `N passed, N failed, N skipped` that counts test cases, and says each skip with its reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source ci/setup.sh

EVENTS="$(mktemp)"
trap 'rm -f "$EVENTS"' EXIT

status=0
"$BAZEL" test //... --keep_going --show_progress_rate_limit=20 --noshow_loading_progress \
  --build_event_json_file="$EVENTS" "$@" || status=$?
python3 ci/count_tests.py "$EVENTS" || status=1
exit "$status"
