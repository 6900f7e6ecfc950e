#!/usr/bin/env bash
# The recipe keys of the reference trainer act, plainly and after a resume; and a declaration that does not hold is found.
# keys_trainer_test.sh KEY...: those that are tried. All keys in all contexts take minutes: trainwreck keys --set steps=6 --expected tests/keys/expected.yaml
set -euo pipefail
fail() { echo "$*" >&2; cat "$output" >&2; exit 1; }
export TRAINWRECK_CACHE="${TEST_TMPDIR:-/tmp}/cache"
output="${TEST_TMPDIR:-/tmp}/keys.txt"
keys() { harness/cli/trainwreck keys --target "$PWD/trainer/trainwreck-trainer" --set steps=6 -v "$@" >"$output" 2>&1; }

keys "$@" --context plain --context resume --expected tests/keys/expected.yaml || fail "exit status $?"
grep -q '^optimizer.beta1 .* plain .*acts .*under optimizer.kind=adamw' "$output" || fail "optimizer.beta1 needs AdamW"
grep -q '^model.init .* resume .*declared' "$output" || fail "model.init acts after a resume"
# With 4096 samples no epoch ends, and with 1 two ranks have no batch each.
keys eval.at_epoch_end sampler.uneven --context ranks --set data.samples=17 || fail "exit status $?"
[ "$(grep -c ' ranks .*acts ' "$output")" = 2 ] || fail "an option of an epoch's end is ignored by two ranks"
sed 's/keys: checkpoint.keep/keys: optimizer.lr/' tests/keys/expected.yaml >"${TEST_TMPDIR:-/tmp}/lying.yaml"
status=0
keys optimizer.lr --context plain --expected "${TEST_TMPDIR:-/tmp}/lying.yaml" || status=$?
[ "$status" = 1 ] || fail "exit status $status with a lying declaration"
grep -q 'NOT AS DECLARED' "$output" || fail "the lie is not named"
