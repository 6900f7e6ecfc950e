#!/usr/bin/env bash
# Checks everything that needs a GPU, from a bundle of ci/gpu_bundle.sh, and writes one report: gpu_check.sh [options]
#   --part i/n      one of n calls (3 or more), each at most 9 minutes: 1 is all before the suite, also the scenarios that are
#                   about a GPU, n all behind it, the others are shards of the rest of the suite. They share --results (default:
#                   gpu.json), and each writes the report of all so far. What is cut short replaces nothing that had ended
#   --report FILE   default: gpu.md; a file that somebody wrote in is not replaced
#   --python PATH   a Python whose torch is to be used; default: TORCH_HOME, else python3
#   --shard i/n     without --part: one of n shards of the suite; -j N, --gpu-runs N, --one-seed are for the suite, too
#   --rehearse      without a GPU, run on the CPU what can be; this verifies nothing
#   --only NAMES, as doctor,nccl-faults, and scenarios: see gpu_check.py --help
# Exits with 0 when all passed that was run on a GPU; 1 when a check failed, also one of an earlier call with these --results;
# 2 for a wrong option or a folder that is no bundle;
# 4 when this call verified nothing on a GPU; 7 when the machine has a GPU that cannot be used, no LibTorch, or libraries that
# do not fit: then no check was started; 130 when SIGINT, SIGTERM or SIGHUP stopped it and no check failed. A signal ends what
# runs as the time limit does, within 25 s, and the report has what was found until then; a second signal kills at once.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu_check.py" "$@"
