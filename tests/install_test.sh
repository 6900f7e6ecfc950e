#!/usr/bin/env bash
# Installs, moves what was installed, and uses it from elsewhere: its own trainer, its own scenarios.
set -euo pipefail
fail() { echo "$*" >&2; exit 1; }
base="$(mktemp -d)"
export TRAINWRECK_CACHE="$base/cache"
install="$PWD/ci/install.sh"
"$install" --prefix "$base/first"
"$install" --prefix 2>/dev/null && fail "a --prefix without a folder was taken"
mkdir "$base/elsewhere"
mv "$base/first" "$base/second"
unset TEST_SRCDIR RUNFILES_DIR TRAINWRECK_TARGET
cd "$base/elsewhere"
trainwreck="$base/second/bin/trainwreck"
head -c 1 "$base/second/share/trainwreck/scenario.schema.json" | grep -q '{' || fail "no schema"
[ -f "$base/second/share/trainwreck/doc/targets.md" ] || fail "no documents"
"$trainwreck" doctor >doctor || fail "$(cat doctor)"
grep -q "$base/second/bin/trainwreck-trainer" doctor || fail "another trainer: $(cat doctor)"
grep -q "$base/second/share/trainwreck/scenarios" doctor || fail "other scenarios: $(cat doctor)"
"$trainwreck" validate || fail "its scenarios are not valid"
"$trainwreck" run nan/lr-too-high --output out >run || fail "$(cat run)"
