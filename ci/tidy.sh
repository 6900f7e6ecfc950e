#!/usr/bin/env bash
# clang-tidy over the sources, with the checks of .clang-tidy: ci/tidy.sh [--all | FILE...]
# Without words all of harness/ and kernels/ but for tests; --all also what needs LibTorch (trainer/, injectors/).
# Prints each finding once, and exits with 1 where there is any.
#
#   TORCH_HOME  LibTorch, as ci/setup.sh found it; default: what .bazelrc.local says
#   CUDA_HOME   a toolkit, so; without one what includes its headers is left out
set -euo pipefail
root="$(realpath "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/..")"
files=()
if [ "${1:-}" != --all ]; then
  for file in "$@"; do files+=("$(realpath -s --relative-base="$root" "$file")"); done
fi
cd "$root"
if ! command -v clang-tidy >/dev/null; then
  echo "SKIPPED: no clang-tidy: nothing was checked (WITH_CLANG_TOOLS=1 ci/setup.sh installs it)"
  exit 0
fi

# LibTorch's headers hold a fmt of their own, so only what includes LibTorch may see them.
setting() { sed -n "s/^build --repo_env=$1=//p" .bazelrc.local 2>/dev/null || true; }
TORCH_HOME="${TORCH_HOME:-$(setting TORCH_HOME)}"
CUDA_HOME="${CUDA_HOME:-$(setting CUDA_HOME)}"
export TORCH_HOME CUDA_HOME

sources() { find "$@" -name '*.cc' ! -name '*_test.cc' | sort; }
uses_torch='#include <(torch|ATen|c10)/'
if [ "${1:-}" = --all ]; then
  if [ -z "$TORCH_HOME" ]; then
    echo "tidy: error: --all needs LibTorch: source ci/setup.sh, or set TORCH_HOME" >&2
    exit 7
  fi
  mapfile -t files < <(sources harness kernels trainer injectors)
  if [ ! -e "$CUDA_HOME/include/nccl.h" ]; then
    uses_cuda='#include [<"](cuda|nccl|c10/cuda|ATen/cuda|torch/csrc/distributed/c10d/ProcessGroupNCCL)'
    printf '%s\n' "${files[@]}" | xargs grep -lE "$uses_cuda" | sed 's/^/SKIPPED: no CUDA toolkit: /' || true
    mapfile -t files < <(printf '%s\n' "${files[@]}" | xargs grep -LE "$uses_cuda")
  fi
elif [ "$#" -eq 0 ]; then
  mapfile -t files < <(sources harness kernels | xargs grep -LE "$uses_torch")
fi

# A folder of outputs, one for each file, so that those of two files do not mix.
outputs="$(mktemp -d)"
trap 'rm -rf "$outputs"' EXIT
export outputs
mkdir -p "$outputs/generated/faults"
{ printf 'R"faults('; cat faults/recipe.yaml; printf ')faults"\n'; } >"$outputs/generated/faults/recipe.inc"
status=0
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c '
  file="$1"
  flags=(-std=c++20 -I. -I"$outputs/generated")
  case "$file" in
    trainer/* | injectors/* | kernels/*)
      flags+=(-isystem "$TORCH_HOME/include" -isystem "$TORCH_HOME/include/torch/csrc/api/include")
      flags+=(-DUSE_C10D_GLOO)
      if [ -e "$CUDA_HOME/include/nccl.h" ]; then flags+=(-isystem "$CUDA_HOME/include" -DUSE_C10D_NCCL); fi ;;
  esac
  out="$outputs/${file//\//%}"
  clang-tidy --quiet --config-file=.clang-tidy "$file" -- "${flags[@]}" >"$out" 2>"$out.err" ||
    { [ -s "$out" ] || cat "$out.err" >&2; exit 1; }
' tidy || status=1

# A finding in a header is that of each file that includes it.
find "$outputs" -maxdepth 1 -type f ! -name '*.err' -print0 | sort -z | xargs -0 cat |
  awk '/: (error|warning): / { shown = seen[$0]++ ? 0 : 1; found += shown } shown { print }
       END { printf "tidy: %d findings\n", found }'
echo "tidy: ${#files[@]} files"
exit "$status"
