#!/usr/bin/env bash
# Installs, moves what was installed, and uses it from elsewhere: its own trainer, its own scenarios and somebody else's. Then the
# same with LibTorch in it, which must be the one that is used.
set -euo pipefail
fail() { echo "$*" >&2; exit 1; }
base="$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")"
trap 'rm -rf "$base"' EXIT
export TRAINWRECK_CACHE="$base/cache"
install="$PWD/ci/install.sh"
"$install" --prefix "$base/first"
"$install" --prefix 2>/dev/null && fail "a --prefix without a folder was taken"
mkdir "$base/elsewhere"
mv "$base/first" "$base/second"
unset TEST_SRCDIR RUNFILES_DIR TRAINWRECK_TARGET
trainwreck="$base/second/bin/trainwreck"
head -c 1 "$base/second/share/trainwreck/scenario.schema.json" | grep -q '{' || fail "no schema"
grep -q '"trainwreck fault"' "$base/second/share/trainwreck/scenario.schema.json" || fail "no schema of faults"
grep -q '"trainwreck defaults of a folder"' "$base/second/share/trainwreck/defaults.schema.json" || fail "no schema of defaults"
[ -f "$base/second/share/trainwreck/doc/docs/guide/targets.md" ] || fail "no documents"

is_complete() {
  "$trainwreck" doctor >doctor || fail "$(cat doctor)"
  grep -q "$base/second/bin/trainwreck-trainer" doctor || fail "another trainer: $(cat doctor)"
  grep -q "$base/second/share/trainwreck/scenarios" doctor || fail "other scenarios: $(cat doctor)"
  "$trainwreck" validate || fail "its scenarios are not valid"
  mkdir -p hooked
  printf 'apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  own: {command: [python3], adapter: python, recipe: {steps: 1}}\n' \
    >hooked/trainwreck.yaml
  (cd hooked && "$trainwreck" explain optimizer.nan_gradient --target own) >fault || fail "no hooks: $(cat fault)"
  "$trainwreck" run nan/corrupt-sample --output "$1" >run || fail "$(cat run)"
}
(cd "$base/elsewhere" && is_complete out)

mkdir -p "$base/mine/scenarios" "$base/mine/deeper"
cd "$base/mine/deeper"
"$trainwreck" new scenario odd/mine >/dev/null
"$trainwreck" run --output "$base/mine/out" >run || fail "$(cat run)"
grep -q '^PASS .* odd/mine$' run || fail "my scenario did not run: $(cat run)"
grep -q '^# 1 case: 1 pass;' run || fail "others ran as well: $(cat run)"

cd "${install%/ci/install.sh}"
"$install" --prefix "$base/first" --with-libtorch
rm -r "$base/second"
mv "$base/first" "$base/second"
cd "$base/elsewhere"
is_complete out-with-libtorch
LD_DEBUG=files LD_DEBUG_OUTPUT="$base/ld" "$base/second/bin/trainwreck-trainer" --describe >/dev/null
sed -n 's/.*calling init: //p' "$base"/ld.* | grep -v -e '^/lib' -e '^/usr/lib' | sort -u >libraries
grep -q "^$base/second/lib/trainwreck/libtorch_cpu.so" libraries || fail "no LibTorch of its own: $(cat libraries)"
grep -v "^$base/second/lib/trainwreck/" libraries && fail "libraries from elsewhere: $(cat libraries)"
exit 0
