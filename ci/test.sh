#!/usr/bin/env bash
# Sets up, builds everything and runs all tests: ci/test.sh [--all] [--with-python-stacks] [bazel test options]
# --all also runs what takes too long for every change: the tests tagged "slow", clang-tidy over all sources, a build with
# link-time optimization that looks for two types of one name, the example of a foreign repository built from outside, three scenarios by
# remote execution (ci/remote_execution.sh, which builds all anew), and the tests with a real Slurm and a real PostgreSQL, which it installs.
# The hooks in Python are tested with Debian's torch 1.13 (48 MB) and a Trainer of Hugging Face that runs with it (17 MB with what
# reads options).
# --with-python-stacks tests them with today's PyTorch, Hugging Face's Trainer and Lightning instead, and the adapter with scikit-learn,
# TensorBoard, MPI, accelerate, torchtitan and x-transformers, and exports with pyarrow, MLflow and wandb, too: 3 GB to download, 5 GB on
# disk, since PyTorch brings its CUDA libraries. --all implies it.
# The package in Python is checked with ruff and mypy (30 MB).
# Ends with a line `N passed, N failed, N skipped` that counts test cases, and says each skip with its reason.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
WITH_PYTHON_STACKS=""
WITH_PYTHON_TORCH=1
WITH_BROWSER=1
WITH_NODES=1
ALL=""
while true; do
  case "${1:-}" in
    --with-python-stacks) WITH_PYTHON_STACKS=1 ;;
    --all) ALL=1 WITH_CLANG_TOOLS=1 WITH_ENGINES=1 WITH_PYTHON_STACKS=1 ;;
    *) break ;;
  esac
  if [ -n "$WITH_PYTHON_STACKS" ]; then WITH_PYTHON_TORCH=""; fi
  shift
done
source ci/setup.sh

source ci/python_stacks.sh

TIERS=()
if [ -z "$ALL" ]; then
  TIERS=(--test_tag_filters=-slow --build_tag_filters=-slow)
fi
EVENTS="$(mktemp)"
trap 'rm -f "$EVENTS"' EXIT

status=0
"$BAZEL" test //... --keep_going --show_progress_rate_limit=20 --noshow_loading_progress \
  --build_event_json_file="$EVENTS" ${TIERS[@]+"${TIERS[@]}"} ${STACKS[@]+"${STACKS[@]}"} "$@" || status=$?

OUTSIDE=()
outside() { # NAME COMMAND...: a check that is no Bazel test
  local name="$1" outcome=passed
  shift
  printf '\n== %s: %s\n' "$name" "$*"
  "$@" || outcome=failed
  OUTSIDE+=("$name=$outcome")
}
if [ -z "$ALL" ]; then
  "$BAZEL" query 'attr(tags, "\bslow\b", tests(//...))' 2>/dev/null |
    sed 's|.*|LEFT OUT &: slow, ci/test.sh --all runs it|'
else
  outside one-definition-rule "$BAZEL" build --config=odr --noshow_progress //harness/cli:trainwreck
  outside clang-tidy ci/tidy.sh --all
  outside out-of-tree ci/out_of_tree.sh
  outside remote-execution ci/remote_execution.sh --second-checkout //scenarios:nan/adam-eps //scenarios:negative/crash \
    //scenarios:invariants/scaled-rate
fi
python3 ci/count_tests.py "$EVENTS" ${OUTSIDE[@]+"${OUTSIDE[@]}"} || status=1
exit "$status"
