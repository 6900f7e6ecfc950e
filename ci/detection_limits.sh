#!/usr/bin/env bash
# The doses of docs/detection-limits.md: ci/detection_limits.sh TRAINWRECK [OPTION...]
set -euo pipefail
trainwreck=$1
shift
dose() {
  echo "## $1, $2"
  "$trainwreck" dose "$1" --param "$2" --from "$3" --to "$4" --levels "$5" --output "$(mktemp -d)" "${@:6}"
}
dose oom/activations inject.budget.with.bytes 20000000 2000000 33 "$@"
dose nan/fp16-static-scale inject.fixed_scale.with.scale 1024 67108864 17 "$@"
dose nan/fp16-overflow inject.huge_weights.with.factor 10 100000 33 "$@"
dose 'nan/lr-too-high[sgd_markov]' inject.hot_lr.with.factor 1 40 33 "$@"
dose 'nan/lr-too-high[adamw]' inject.hot_lr.with.factor 1 40 33 "$@"
dose hang/uneven-shards inject.short_shard.with.drop 0.01 0.5 33 "$@"
