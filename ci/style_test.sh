#!/usr/bin/env bash
# The style check over the real tree, and over a planted bad file that it must find.
set -euo pipefail
script="$(readlink -f "$0")"  # out of Bazel's runfiles, into the checkout
root="$(dirname "$(dirname "$script")")"

planted="$(mktemp -d)"
trap 'rm -rf "$planted"' EXIT
mkdir -p "$planted/trainer"
printf 'class RunManager {};\nvoid F(bool fault) {\n  if (fault) return;\n}\n' >"$planted/trainer/x.cc"
printf '// The parts.\n#pragma once\n#include "trainer/models/model.h"\n' >"$planted/trainer/x.h"
mkdir -p "$planted/harness/a" "$planted/harness/b"
printf '// A.\n#pragma once\nnamespace trainwreck {\n\nstruct History {\n  int a;\n};\n\n}  // namespace trainwreck\n' \
  | tee "$planted/harness/a/x.h" >"$planted/harness/b/y.h"
if python3 "$root/ci/style_check.py" "$planted" >"$planted/out"; then
  echo "the style check did not find the planted errors"; exit 1
fi
grep -q 'trainwreck::History is also a type of harness/a/x.h' "$planted/out"
grep -q 'a class named Manager' "$planted/out"
grep -q 'no branch on faults' "$planted/out"
grep -q 'a header that is slow to compile' "$planted/out"

python3 "$root/ci/style_check.py" "$root"
