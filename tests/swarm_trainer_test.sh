#!/usr/bin/env bash
# Combinations of faults on the reference trainer break no rule; the same seed draws the same ones; a folder goes on where it was left.
set -euo pipefail
fail() { echo "$*" >&2; cat "$output" >&2; exit 1; }
export TRAINWRECK_CACHE="${TEST_TMPDIR:-/tmp}/cache"
output="${TEST_TMPDIR:-/tmp}/swarm.txt" folder="${TEST_TMPDIR:-/tmp}/swarm"
swarm() { harness/cli/trainwreck swarm --target "$PWD/trainer/trainwreck-trainer" "$@" >"$output" 2>&1; }

swarm --seed 7 --runs 6 --output "$folder" || fail "exit status $?"
swarm --seed 7 --runs 12 --output "$folder" || fail "exit status $? of the folder that goes on"
grep -q '^# 12 combinations of seed 7: 0 broke a rule' "$output" || fail "not 12 combinations"
[ "$(wc -l <"$folder/swarm.jsonl")" = 12 ] || fail "a combination was run twice"
swarm --seed 7 --only 3 --output "$folder.3" || fail "exit status $? of one combination"
python3 - "$folder/swarm.jsonl" "$folder.3/swarm.jsonl" <<'PYTHON' || fail "the same number is another combination"
import json, sys
whole, one = ([json.loads(line) for line in open(file)] for file in sys.argv[1:])
same = [{key: record[key] for key in ("number", "faults", "recipe", "fired", "end")} for record in (whole[3], one[0])]
sys.exit(same[0] != same[1])
PYTHON
status=0
swarm --runs 1 --seed 8 --output "$folder" || status=$?
[ "$status" != 0 ] && grep -q 'is of seed 7' "$output" || fail "records of two seeds in one folder: $status"
