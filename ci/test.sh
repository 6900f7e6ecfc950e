#!/usr/bin/env bash
# Sets up, builds everything and runs all tests: ci/test.sh [--with-python-stacks] [bazel test options]
# --with-python-stacks installs scikit-learn, PyTorch, TensorBoard and MPI to test with (3 GB to download, 5 GB on disk: PyTorch
# brings its CUDA libraries); else they are used if found.
# Ends with a line `N passed, N failed, N skipped` that counts test cases, and says each skip with its reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
STACKS=()
WITH_PYTHON_STACKS=""
if [ "${1:-}" = --with-python-stacks ]; then
  shift
  WITH_PYTHON_STACKS=1
fi
source ci/setup.sh

if [ -n "$WITH_PYTHON_STACKS" ]; then
  python="$TRAINWRECK_CACHE/python-stacks/bin/python3"
  if ! "$python" -c 'import mpi4py, sklearn, tensorboard, torch' 2>/dev/null; then
    # Without a pip of its own, which would take one more Debian package.
    [ -x "$python" ] || python3 -m venv --without-pip "$TRAINWRECK_CACHE/python-stacks"
    python3 -m pip --python "$python" install -q mpi4py scikit-learn tensorboard "torch==$TORCH_VERSION" >&2
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
