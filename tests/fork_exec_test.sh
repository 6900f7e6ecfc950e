#!/usr/bin/env bash
# A run that is forked from a warm process is bit for bit that of a fresh one: every kind of model, dropout, 16 bits, a resume
# and two ranks.
set -euo pipefail
output="${TEST_TMPDIR:-/tmp}/fork_exec"
export TRAINWRECK_CACHE="$output/cache"
export TRAINWRECK_TARGET="$PWD/trainer/trainwreck-trainer"
fail() { echo "$*" >&2; cat "$output/log.txt" >&2; exit 1; }
mkdir -p "$output"
rm -rf "$output/runs"

runs=(
  not-learning/missing-zero-grad/control/0       # mlp
  nan/sequence-length-explosion/control/0        # rnn
  nan/div-by-zero/control/0                      # prototype
  twins/again/control/0                          # gpt, dropout
  twins/resume/twice/0                           # bf16, a loss scale, three phases
  twins/buckets/small/0                          # two ranks
)
scenarios=()
for run in "${runs[@]}"; do scenarios+=("${run%/*/*}"); done
# One seed is too few for some of the claims, which are not the point here.
harness/cli/trainwreck run "${scenarios[@]}" --seeds 1 --keep all --isolate fork --output "$output/runs" \
  >"$output/log.txt" 2>&1 || [ $? = 5 ] || fail "the forked runs"
grep -q 'isolation: fork' "$output/log.txt" || fail "not forked"
for run in "${runs[@]}"; do
  harness/cli/trainwreck rerun "$output/runs/$run" --isolate exec --output "$output/again" >"$output/log.txt" 2>&1 || fail "$run"
  grep -q 'same bits in all signals' "$output/log.txt" || fail "$run"
done
# What follows from no seed is seen.
if harness/cli/trainwreck rerun "$output/runs/twins/again/unseeded/0" --isolate exec --output "$output/again" \
  >"$output/log.txt" 2>&1; then
  fail "noise without a seed has the same bits"
fi
grep -q 'not the same bits' "$output/log.txt" || fail "noise without a seed"
