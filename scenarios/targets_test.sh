#!/usr/bin/env bash
# targets.bzl says what `trainwreck list --format bazel` says, so that no scenario is left out of `bazel test`.
set -euo pipefail
harness/cli/trainwreck list scenarios --format bazel --scenarios-root scenarios \
  --target trainer/trainwreck-trainer >"$TEST_TMPDIR/targets.bzl"
if ! diff "$TEST_TMPDIR/targets.bzl" scenarios/targets.bzl; then
  echo "run: trainwreck list --format bazel > scenarios/targets.bzl"
  exit 1
fi
