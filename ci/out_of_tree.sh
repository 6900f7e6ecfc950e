#!/usr/bin/env bash
# Builds and tests a copy of examples/out_of_tree outside of this repository, which is an external one to it:
# ci/out_of_tree.sh [options of bazel test]
# That compiles the whole trainer under other paths than here, so it takes as long as a first build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source ci/setup.sh

folder="$(mktemp -d)"
trap '"$BAZEL" clean --expunge; rm -rf "$folder"' EXIT
cp -r examples/out_of_tree/. "$folder"
sed -i "s#path = \"../..\"#path = \"$REPO_ROOT\"#" "$folder/WORKSPACE"
cd "$folder"
"$BAZEL" --bazelrc="$REPO_ROOT/.bazelrc.local" test --experimental_convenience_symlinks=ignore --test_output=errors //... "$@"
