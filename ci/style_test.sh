#!/usr/bin/env bash
# The style check over the real tree, and over planted bad files that it must find.
set -euo pipefail
script="$(readlink -f "$0")"  # out of Bazel's runfiles, into the checkout
root="$(dirname "$(dirname "$script")")"

planted="$(mktemp -d)"
trap 'rm -rf "$planted"' EXIT
mkdir -p "$planted/trainer"
printf 'class RunManager {};\nvoid F(bool fault) {\n  if (fault) return;\n}\n' >"$planted/trainer/x.cc"
printf '// The parts.\n#pragma once\n#include "trainer/models/model.h"\n' >"$planted/trainer/x.h"
mkdir -p "$planted/trainer/ranks"
printf '#include "trainer/data/data.h"\n#include "trainer/loop.h"\n#include "trainer/parts.h"\n' >"$planted/trainer/ranks/y.cc"
mkdir -p "$planted/harness/a" "$planted/harness/b"
printf '// A.\n#pragma once\nnamespace trainwreck {\n\nstruct History {\n  int a;\n};\n\n}  // namespace trainwreck\n' \
  | tee "$planted/harness/a/x.h" >"$planted/harness/b/y.h"
printf 'bool F(const Verdict& v) {\n  return v.verdict == "fail";\n}\n' >"$planted/harness/a/z.cc"
printf 'bool g = word == "inconclusive";\n' >"$planted/harness/b/z.cc"
{ printf 'int Long(int a,\n         int b) {\n'; printf '  a += b;\n%.0s' {1..30}; printf 'text(of a raw string)\n'
  printf '  a += b;\n%.0s' {1..40}; printf '  return a;\n}\n'; } >"$planted/harness/b/long.cc"
{ printf '// Much.\n#pragma once\n'; printf '//\n%.0s' {1..498}; } >"$planted/harness/b/much.h"
{ cat "$planted/harness/b/much.h"; printf '//\n'; } >"$planted/harness/b/too_much.h"
wide="$(printf 'word %.0s' {1..30})"
long="$(printf 'x%.0s' {1..100})"
# What may be wide stands first: a table, a heading, code, an address, and code that no space divides.
printf '# %s\n| %s|\n    %s\n```\n%s\n```\n' "$wide" "$wide" "$wide" "$wide" >"$planted/page.md"
printf 'See [page](page.md#here%s)\n`%s`\n\n' "$long" "$wide" >>"$planted/page.md"
printf '## Here\n%s.\n- %s\n[a](gone.md), [b](page.md#here), [c](page.md#there)\n' "$wide" "$wide" >>"$planted/page.md"
printf 'ROOMS = [\n    "a",\n    "b",\n]\n' >"$planted/harness/BUILD"
printf '| harness/b | B |\n| harness/a | A |\n' >"$planted/ARCHITECTURE.md"
if python3 "$root/ci/style_check.py" "$planted" >"$planted/out"; then
  echo "the style check did not find the planted errors"; exit 1
fi
grep -q 'trainwreck::History is also a type of harness/a/x.h' "$planted/out"
grep -q 'harness/a/z.cc:2: an outcome by its name' "$planted/out"
grep -q 'harness/b/z.cc:1: an outcome by its name' "$planted/out"
grep -q 'harness/b/long.cc:1: a function of 75 lines' "$planted/out"
diff - <(grep '^trainer/ranks' "$planted/out") <<END
trainer/ranks/y.cc:1: ranks lies below the room of trainer/data/data.h
trainer/ranks/y.cc:2: ranks lies below the room of trainer/loop.h
END
grep -q 'harness/b/too_much.h:501: 501 lines: the file holds two ideas' "$planted/out"
if grep -q 'harness/b/much.h' "$planted/out"; then echo "a file of 500 lines may be"; exit 1; fi
grep -q 'ARCHITECTURE.md:1: its table has the rooms b a; harness/BUILD has a b' "$planted/out"
grep -q 'a class named Manager' "$planted/out"
grep -q 'no branch on faults' "$planted/out"
grep -q 'a header that is slow to compile' "$planted/out"
diff - <(grep '^page.md' "$planted/out") <<END
page.md:7: a link to a heading that is not there: page.md#here$long
page.md:13: a link to gone.md, which is not there
page.md:13: a link to a heading that is not there: page.md#there
page.md:11: prose that is not wrapped at 100 columns
page.md:12: prose that is not wrapped at 100 columns
END

python3 "$root/ci/style_check.py" "$root"
