#!/usr/bin/env bash
# Sets up, builds both programs and runs the scenario suite: ci/run_scenarios.sh [options of `trainwreck run`]
#
#   ci/run_scenarios.sh                        everything under scenarios/
#   ci/run_scenarios.sh --config=cuda          the same with the trainer that has GPUs
#   ci/run_scenarios.sh -t smoke --report junit=report.xml
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source ci/setup.sh

trainer=trainwreck-trainer
if [ "${1:-}" = --config=cuda ]; then
  trainer+=-cuda
  shift
fi
"$BAZEL" build --noshow_progress //harness/cli:trainwreck "//trainer:$trainer"
BIN="$("$BAZEL" info bazel-bin 2>/dev/null)"
exec "$BIN/harness/cli/trainwreck" run --target "$BIN/trainer/$trainer" "$@"
