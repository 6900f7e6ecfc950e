#!/usr/bin/env bash
# Sets up, builds everything and runs all tests: ci/test.sh [--with-python-stacks] [bazel test options]
# --with-python-stacks installs scikit-learn, PyTorch and TensorBoard (about 1 GB) to test with; else they are used if found.
# Ends with a line `N passed, N failed, N skipped` that counts test cases, and says each skip with its reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source ci/setup.sh

STACKS=()
if [ "${1:-}" = --with-python-stacks ]; then
  shift
  python="$TRAINWRECK_CACHE/python-stacks/bin/python3"
  if ! "$python" -c 'import sklearn, torch, tensorboard' 2>/dev/null; then
    python3 -m venv "$TRAINWRECK_CACHE/python-stacks"
    "$python" -m pip install -q scikit-learn tensorboard "torch==$TORCH_VERSION" >&2
  fi
  STACKS=("--test_env=TRAINWRECK_STACKS_PYTHON=$python")
fi

EVENTS="$(mktemp)"
trap 'rm -f "$EVENTS"' EXIT

status=0
"$BAZEL" test //... --keep_going --show_progress_rate_limit=20 --noshow_loading_progress \
  --build_event_json_file="$EVENTS" ${STACKS[@]+"${STACKS[@]}"} "$@" || status=$?
python3 ci/count_tests.py "$EVENTS" || status=1
exit "$status"
