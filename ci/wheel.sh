#!/usr/bin/env bash
# Builds the harness and packs it as a wheel for pip: ci/wheel.sh [--out DIR]; default: dist/. Prints the path of the wheel.
set -euo pipefail
out=""
case "$#,${1:-}" in
  0,) ;;
  2,--out) out="$(realpath -m "$2")" ;;
  *) echo "usage: ci/wheel.sh [--out DIR]" >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
WITHOUT_TORCH=1 source ci/setup.sh
# In the configuration of the tests, which optimizes, too: what is packed is what was tested.
"$BAZEL" build --noshow_progress //harness/cli:trainwreck
python3 tools/wheel.py pack "$("$BAZEL" info bazel-bin 2>/dev/null)/harness/cli/trainwreck" "${out:-dist}"
