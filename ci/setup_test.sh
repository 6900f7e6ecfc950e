#!/usr/bin/env bash
# ci/setup.sh: which LibTorch it takes, and which it refuses, in one line. Installs and downloads nothing.
set -euo pipefail
cd "$TEST_SRCDIR/$TEST_WORKSPACE"
mkdir -p "$TEST_TMPDIR/repo/ci" "$TEST_TMPDIR/cache"
# The folder that it writes .bazelrc.local to is that above it.
sed 's/^setup$/find_libtorch; echo "took $TORCH_HOME"/' ci/setup.sh >"$TEST_TMPDIR/repo/ci/setup.sh"
failures=0

make_torch() { # folder version
  mkdir -p "$1/lib" "$1/include/torch/csrc/api/include/torch" "$1/include/torch/headeronly"
  touch "$1/lib/libtorch_cpu.so" "$1/include/torch/csrc/api/include/torch/torch.h"
  local major minor patch
  IFS=. read -r major minor patch <<<"$2"
  printf '#define TORCH_VERSION_MAJOR %s\n#define TORCH_VERSION_MINOR %s\n#define TORCH_VERSION_PATCH %s\n' \
    "$major" "$minor" "$patch" >"$1/include/torch/headeronly/version.h"
}

expect() { # wanted output (a part of it), status, environment...
  local wanted="$1" status="$2" got code=0
  shift 2
  got="$(env -i PATH="$PATH" HOME="$TEST_TMPDIR" TRAINWRECK_CACHE="$TEST_TMPDIR/cache" "$@" \
    bash "$TEST_TMPDIR/repo/ci/setup.sh" 2>&1)" || code=$?
  if [ "$code" != "$status" ] || [[ "$got" != *"$wanted"* ]] || [ "$(wc -l <<<"$got")" != 1 ]; then
    printf 'with %s: wanted status %s and one line with\n  %s\ngot %s and\n  %s\n' "$*" "$status" "$wanted" "$code" "$got"
    failures=$((failures + 1))
  fi
}

new="$TEST_TMPDIR/cache/libtorch-2.15.0"
make_torch "$new" 2.15.0
make_torch "$TEST_TMPDIR/old" 2.4.1
make_torch "$TEST_TMPDIR/ancient" 1.13.1
rm "$TEST_TMPDIR/ancient/include/torch/headeronly/version.h"

expect "took $new" 0 TORCH_VERSION=2.15.0
expect "took $new" 0 TORCH_HOME="$new"
expect "TORCH_VERSION=2.4.1 is too old: trainwreck needs LibTorch 2.11 or newer" 7 TORCH_VERSION=2.4.1
expect "TORCH_VERSION=newest is not a version of LibTorch" 7 TORCH_VERSION=newest
expect "(LibTorch 2.4.1) is too old" 7 TORCH_HOME="$TEST_TMPDIR/old"
expect "(LibTorch of unknown version) is too old" 7 TORCH_HOME="$TEST_TMPDIR/ancient"
expect "holds no LibTorch" 7 TORCH_HOME="$TEST_TMPDIR/nowhere"

# Debian's torch for Python is not a part of the build: where it cannot be had, the set-up says so and goes on.
mkdir "$TEST_TMPDIR/bin"
printf '#!/bin/sh\nexit 100\n' | tee "$TEST_TMPDIR/bin/apt-get" >"$TEST_TMPDIR/bin/sudo"
chmod +x "$TEST_TMPDIR/bin/apt-get" "$TEST_TMPDIR/bin/sudo"
sed 's|^setup$|say() { printf "%s. " "$*" \>\&2; }; install_what_tests_need; echo "went on"|; s|/usr/lib/python3/dist-packages|/nowhere|' \
  ci/setup.sh >"$TEST_TMPDIR/repo/ci/setup.sh"
expect "went on" 0
expect "warning: python3-torch cannot be installed: the tests of the hooks in Python are skipped. went on" 0 \
  WITH_PYTHON_TORCH=1 PATH="$TEST_TMPDIR/bin:$PATH"
# So it is with what else tests are made with.
sed -i 's|/usr/sbin/slurmctld|/nowhere|; s|/usr/bin/faketime|/nowhere|; s|/usr/lib/postgresql|/nowhere|' "$TEST_TMPDIR/repo/ci/setup.sh"
expect "the tests of Slurm are skipped. installing Debian packages: postgresql. warning: postgresql cannot be installed: the tests of histories on PostgreSQL are skipped. went on" \
  0 WITH_ENGINES=1 PATH="$TEST_TMPDIR/bin:$PATH"
expect "the tests of faults of nodes and networks are skipped. went on" 0 WITH_NODES=1 PATH="$TEST_TMPDIR/bin:$PATH"

# What Bazel is told of the machine is written without a word on the terminal.
sed 's|^setup$|TORCH_HOME=/there; write_bazelrc_local; grep -c -- "--test_env=TRAINWRECK_RUN_WITH=" "$REPO_ROOT/.bazelrc.local"|' \
  ci/setup.sh >"$TEST_TMPDIR/repo/ci/setup.sh"
expect "1" 0

# Another version of a package is another word, which a cache that machines share asks for.
printf '#!/bin/sh\necho "a $VERSION installed"\n' >"$TEST_TMPDIR/bin/dpkg-query"
chmod +x "$TEST_TMPDIR/bin/dpkg-query"
sed 's/^setup$/versions_of a/' ci/setup.sh >"$TEST_TMPDIR/repo/ci/setup.sh"
with_version() { PATH="$TEST_TMPDIR/bin:$PATH" VERSION="$1" bash "$TEST_TMPDIR/repo/ci/setup.sh"; }
if [ "$(with_version 1)" != "$(with_version 1)" ] || [ "$(with_version 1)" = "$(with_version 2)" ]; then
  printf 'versions 1, 1 and 2 of a package: %s, %s, %s\n' "$(with_version 1)" "$(with_version 1)" "$(with_version 2)"
  failures=$((failures + 1))
fi
exit "$((failures > 0))"
