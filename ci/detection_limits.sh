#!/usr/bin/env bash
# The doses of docs/measured/detection-limits.md: ci/detection_limits.sh TRAINWRECK [OPTION...]
set -euo pipefail
trainwreck=$1
shift
status=0
dose() {
  echo "## $1, $2"
  # One undecided question is no reason to leave the others out.
  "$trainwreck" dose "$1" --param "$2" --from "$3" --to "$4" --levels "$5" --output "$(mktemp -d)" "${@:6}" || status=$?
}
dose oom/activations inject.budget.with.bytes 20000000 2000000 33 "$@"
dose nan/fp16-static-scale inject.fixed_scale.with.scale 1024 67108864 17 "$@"
dose nan/fp16-overflow inject.huge_weights.with.factor 10 100000 33 "$@"
dose 'nan/lr-too-high[sgd_markov]' inject.hot_lr.with.factor 1 40 33 "$@"
dose 'nan/lr-too-high[adamw]' inject.hot_lr.with.factor 1 40 33 "$@"
dose nan/bad-init-step-1 inject.huge_weights.with.std 0.1 1e22 33 "$@"
dose not-learning/lr-too-low inject.low_lr.with.factor 1 0.00001 33 "$@"
dose not-learning/lr-oscillation inject.hot.with.factor 1 16 33 "$@"
dose not-learning/over-regularised inject.heavy_decay.with.value 0.01 100 33 "$@"
dose not-learning/label-smoothing inject.smoothed.with.value 0.02 0.98 33 "$@"
dose 'not-learning/bad-init[small]' inject.weights.with.std 0.2 0.001 33 "$@"
dose not-learning/saturation inject.raw_units.with.factor 1 10000 33 "$@"
dose not-learning/dead-relu inject.negative_biases.with.by -1 -16 33 "$@"
dose nan/log-zero inject.cold.with.factor 1 64 33 "$@"
dose nan/unstable-softmax inject.cold.with.factor 1 64 33 "$@"
dose nan/logsumexp-underflow inject.other_units.with.factor 1 100 33 "$@"
dose 'nan/sqrt-negative[negative]' inject.sample.with.offset 100 1000000 33 "$@"
dose nan/fp16-softmax inject.huge_queries_and_keys.with.factor 10 20000 33 "$@"
dose nan/late-divergence inject.hot_restart.with.ratio 1 40 33 "$@"
dose nan/sequence-length-explosion inject.long_batch.with.times 2 64 17 "$@"
dose not-learning/loss-collapse inject.skewed.with.share 0.25 0.99 33 "$@"
dose not-learning/batchnorm-tiny-batch inject.tiny.with.size 16 2 15 "$@"
dose 'hang/uneven-shards[two]' inject.short_shard.with.drop 0.01 0.5 33 "$@"
exit "$status"
