#!/usr/bin/env bash
# ci/tidy.sh: clean over two small files, red over a planted finding in a source and one in a header, and loud where there is no
# clang-tidy. All files are read by ci/tidy.sh --all.
set -euo pipefail
script="$(readlink -f "$0")"  # out of Bazel's runfiles, into the checkout
root="$(dirname "$(dirname "$script")")"
planted="$(mktemp -d)"
trap 'rm -rf "$planted"' EXIT

die() { printf 'tidy_test: %s\n' "$*"; exit 1; }

# Where it is not installed nothing is checked, and it says so.
mkdir "$planted/bin"
for tool in bash dirname readlink realpath; do ln -s "$(command -v "$tool")" "$planted/bin/"; done
PATH="$planted/bin" "$root/ci/tidy.sh" "$script" >"$planted/out" || die "without clang-tidy: exit code $?"
grep -q '^SKIPPED: no clang-tidy' "$planted/out" || die "does not say that there is no clang-tidy"

if ! command -v clang-tidy >/dev/null; then
  cat "$planted/out"
  # ci/count_tests.py counts the skip and tells the reason.
  printf '<testsuites><testsuite name="tidy"><testcase name="tidy"><skipped message="%s"/></testcase></testsuite></testsuites>\n' \
    "clang-tidy is not installed" >"${XML_OUTPUT_FILE:-/dev/null}"
  exit 0
fi

"$root/ci/tidy.sh" "$root/harness/formula/node.cc" "$root/kernels/digest_portable.cc" || die "findings in clean files"

mkdir "$planted/harness"
printf '#pragma once\nstruct Base { virtual ~Base() = default; virtual int F(); };\nstruct Derived : Base { virtual int F(); };\n' \
  >"$planted/harness/planted.h"
printf '#include "planted.h"\nint Whole(double x) {\n  int i = x;\n  return i;\n}\n' >"$planted/harness/planted.cc"
if "$root/ci/tidy.sh" "$planted/harness/planted.cc" >"$planted/out"; then
  cat "$planted/out"; die "did not find what was planted"
fi
grep -q 'planted.cc:3:.*bugprone-narrowing-conversions' "$planted/out" || die "not the finding in the source: $(cat "$planted/out")"
grep -q 'planted.h:3:.*modernize-use-override' "$planted/out" || die "not the finding in the header: $(cat "$planted/out")"
grep -q '^tidy: 2 findings' "$planted/out" || die "another number of findings: $(cat "$planted/out")"
