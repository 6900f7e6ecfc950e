#!/usr/bin/env bash
# Installs what the build needs and is not there yet, then writes .bazelrc.local with where things are.
# Sourced by ci/test.sh and ci/run_scenarios.sh. Uses no network when nothing is missing.
#
#   TORCH_HOME  an unpacked LibTorch (include/ and lib/); default: found, else unpacked into the cache
#   TORCH_VERSION  which LibTorch to find or unpack; default: 2.11.0, or any that is installed already
#   WITHOUT_TORCH  when not empty, no LibTorch is looked for: the harness needs none
#   CUDA_HOME   a CUDA toolkit; default: /usr/local/cuda when it is there
#   BAZEL       the bazel to use; default: the one on PATH, else Debian's bazel-bootstrap
#   WITH_PYTHON_TORCH  when not empty, also Debian's torch for Python (600 MB), if it is to be had: ci/test.sh tests hooks with it
#   WITH_BROWSER  when not empty, also Chromium and its driver (300 MB), if they are to be had: ci/test.sh opens pages with it
#   WITH_NODES  when not empty, also what makes nodes and networks of one machine (5 MB): ci/test.sh breaks them
#   WITH_ENGINES  when not empty, also Slurm and a server of PostgreSQL (150 MB), which ci/test.sh --all starts
#   WITH_PYTHON_STACKS  when not empty, also what ci/test.sh --with-python-stacks needs
#   WITH_CLANG_TOOLS  when not empty, also clang-tidy (400 MB), for ci/tidy.sh
#   TRAINWRECK_CACHE  where downloads are unpacked; default: ${XDG_CACHE_HOME:-$HOME/.cache}/trainwreck
set -euo pipefail

REPO_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
TRAINWRECK_CACHE="${TRAINWRECK_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/trainwreck}"
OLDEST_TORCH=2.11
WANTED_TORCH="${TORCH_VERSION:-}"
TORCH_VERSION="${TORCH_VERSION:-2.11.0}"
CUDA_RUNTIME_VERSION=13.0.96
CUDA_CUPTI_VERSION=13.0.85

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 7; }

# Debian package -> a file that proves it is there.
DEBIAN_PACKAGES=(
  "g++:/usr/bin/g++"
  "ca-certificates:/etc/ssl/certs/ca-certificates.crt"
  "git:/usr/bin/git"
  "python3-pip:/usr/bin/python3"
  "unzip:/usr/bin/unzip"
  "clang-format:/usr/bin/clang-format"
  "libyaml-cpp-dev:/usr/include/yaml-cpp/yaml.h"
  "libcli11-dev:/usr/include/CLI/CLI.hpp"
  "nlohmann-json3-dev:/usr/include/nlohmann/json.hpp"
  "libfmt-dev:/usr/include/fmt/format.h"
  "libgtest-dev:/usr/include/gtest/gtest.h"
  "libgmock-dev:/usr/include/gmock/gmock.h"
  "libbenchmark-dev:/usr/include/benchmark/benchmark.h"
  "librapidcheck-dev:/usr/include/rapidcheck.h"
  "libre2-dev:/usr/include/re2/re2.h"
  "libgloo-dev:/usr/include/gloo/config.h"
  "libvalijson-dev:/usr/include/valijson/validator.hpp"
  "libxml2-utils:/usr/bin/xmllint"
  "libsqlite3-dev:/usr/include/sqlite3.h"
  "libsimdjson-dev:/usr/include/simdjson.h"
  "libjs-dygraphs:/usr/share/javascript/dygraphs/dygraph.min.js"
  "libboost1.81-dev:/usr/include/boost/math/distributions/normal.hpp"
)
BAZEL_PACKAGES=(
  "bazel-bootstrap:/usr/bin/bazel"
  "bazel-platforms:/usr/share/bazel/platforms/BUILD"
  "bazel-skylib:/usr/share/bazel/tools/skylib/lib.bzl"
  "bazel-rules-java:/usr/share/bazel/rules/java/java/defs.bzl"
  "bazel-rules-proto:/usr/share/bazel/rules/proto/proto/defs.bzl"
)

install_debian_packages() {
  local wanted=("${DEBIAN_PACKAGES[@]}") missing=() entry
  wanted+=("${BAZEL_PACKAGES[@]}")
  if [ -n "${WITH_PYTHON_STACKS:-}" ]; then wanted+=("openmpi-bin:/usr/bin/mpirun"); fi
  if [ -n "${WITH_CLANG_TOOLS:-}" ]; then wanted+=("clang-tidy:/usr/bin/clang-tidy"); fi
  for entry in "${wanted[@]}"; do
    [ -e "${entry#*:}" ] || missing+=("${entry%%:*}")
  done
  [ "${#missing[@]}" -eq 0 ] && return 0
  command -v apt-get >/dev/null || die "not a Debian machine; install the equivalents of: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || die "packages are missing and there is no root: sudo apt-get install ${missing[*]}"
  fi
  install_with_apt "${missing[@]}"
}

install_with_apt() {
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo -n); fi
  say "installing Debian packages: $*"
  "${as_root[@]}" apt-get update -q >&2 &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >&2
}

# Not a part of the build: without it, its tests are skipped. FILE... prove that the packages are there.
install_for_tests() { # "PACKAGE..." "WHAT IS TESTED WITH THEM" FILE...
  local packages="$1" what="$2" file missing=""
  shift 2
  for file in "$@"; do [ -e "$file" ] || missing=1; done
  [ -n "$missing" ] || return 0
  install_with_apt $packages || say "warning: $packages cannot be installed: the tests of $what are skipped"
}

install_what_tests_need() {
  if [ -n "${WITH_PYTHON_TORCH:-}" ]; then
    install_for_tests python3-torch "the hooks in Python" /usr/lib/python3/dist-packages/torch/__init__.py
  fi
  if [ -n "${WITH_BROWSER:-}" ]; then
    install_for_tests "chromium chromium-driver" pages /usr/bin/chromium /usr/bin/chromedriver
  fi
  if [ -n "${WITH_NODES:-}" ]; then
    install_for_tests "iproute2 nftables faketime" "faults of nodes and networks" /sbin/tc /usr/sbin/nft /usr/bin/faketime
  fi
  if [ -n "${WITH_ENGINES:-}" ]; then
    install_for_tests "slurmctld slurmd slurm-client munge iproute2" Slurm /usr/sbin/slurmctld /usr/sbin/slurmd /usr/bin/sbatch \
      /usr/sbin/munged /sbin/ip
    install_for_tests postgresql "histories on PostgreSQL" /usr/lib/postgresql/*/bin/pg_ctl
  fi
}

# install_packages FOLDER WHAT_IS_SKIPPED PACKAGE...: fails, and says so, where pip cannot have them.
install_packages() {
  local folder="$1" skipped="$2"
  shift 2
  [ -d "$folder" ] && return 0
  say "installing $* into $folder"
  rm -rf "$folder.tmp"
  if ! python3 -m pip install -q --no-deps --no-compile --root-user-action=ignore --target "$folder.tmp" "$@" >&2; then
    say "warning: pip cannot install them: $skipped are skipped"
    return 1
  fi
  mv "$folder.tmp" "$folder"
}

# A folder is a usable LibTorch when the CPU library and the headers are in it.
is_libtorch() { [ -e "$1/lib/libtorch_cpu.so" ] && [ -e "$1/include/torch/csrc/api/include/torch/torch.h" ]; }

# "2.11.0": what its headers say; empty: they say nothing, as those before 2.9.
torch_version_of() {
  local header="$1/include/torch/headeronly/version.h"
  [ -e "$header" ] || return 0
  sed -n 's/^#define TORCH_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' "$header" | paste -sd.
}

# Older ones lack headers and functions that the trainer calls: said here, not by the compiler.
refuse_old_torch() {
  local version="$1" where="$2"
  [[ "$version" =~ ^[0-9]+\.[0-9]+ ]] || die "$where is not a version of LibTorch; say, TORCH_VERSION=2.11.0"
  [ "$(printf '%s\n' "$OLDEST_TORCH" "$version" | sort -V | head -n 1)" = "$OLDEST_TORCH" ] ||
    die "$where is too old: trainwreck needs LibTorch $OLDEST_TORCH or newer"
}

# libtorch_cpu.so of the CUDA wheels needs these two even on a machine without a GPU.
link_cuda_runtime() {
  local libtorch="$1" name found
  for name in libcudart.so.13 libcupti.so.13; do
    [ -e "$libtorch/lib/$name" ] && continue
    ldd "$libtorch/lib/libtorch_cpu.so" 2>/dev/null | grep -q "$name => not found" || continue
    found="$(find -L "${CUDA_HOME:-/usr/local/cuda}" -name "$name" 2>/dev/null | head -n 1 || true)"
    if [ -n "$found" ]; then
      cp -L "$found" "$libtorch/lib/$name"
    else
      return 1
    fi
  done
}

# What programs with GPUs link; their own libraries (cuDNN, ...) are needed only where there is a GPU.
has_cuda_libraries() { [ -e "$1/lib/libtorch_cuda.so" ] && [ -e "$1/lib/libc10_cuda.so" ]; }
wants_cuda_libraries() { [ -n "${CUDA_HOME:-}" ] && [ -x "$CUDA_HOME/bin/nvcc" ]; }

download_torch() {
  local wheels="$1"
  mkdir -p "$wheels"
  if ! ls "$wheels"/torch-"$TORCH_VERSION"-*.whl >/dev/null 2>&1; then
    say "downloading torch $TORCH_VERSION (530 MB; headers and the libraries that are linked are kept)"
    python3 -m pip download -q --no-deps --python-version 3.11 --implementation cp \
      --platform manylinux_2_28_x86_64 --only-binary=:all: -d "$wheels" "torch==$TORCH_VERSION" >&2
  fi
}

unpack_cuda_libraries() {
  local into="$1" wheels="$2"
  # Moved into place one by one, so that a half of one is never taken for it.
  unzip -q -o -j "$wheels"/torch-"$TORCH_VERSION"-*.whl 'torch/lib/libtorch_cuda.so' \
    'torch/lib/libc10_cuda.so' -d "$into/lib.tmp" &&
    mv "$into/lib.tmp/libtorch_cuda.so" "$into/lib/" &&
    mv "$into/lib.tmp/libc10_cuda.so" "$into/lib/" && rmdir "$into/lib.tmp"
}

# A LibTorch of ours that was unpacked before there was a CUDA toolkit lacks what needs one.
complete_with_cuda() {
  wants_cuda_libraries && ! has_cuda_libraries "$TORCH_HOME" || return 0
  if [ "$TORCH_HOME" != "$TRAINWRECK_CACHE/libtorch-$TORCH_VERSION" ]; then
    say "TORCH_HOME=$TORCH_HOME has no libtorch_cuda.so: targets that need it are skipped"
    return 0
  fi
  local wheels="$TRAINWRECK_CACHE/wheels"
  say "there is a CUDA toolkit in $CUDA_HOME: adding LibTorch's CUDA libraries"
  download_torch "$wheels" && unpack_cuda_libraries "$TORCH_HOME" "$wheels" ||
    say "warning: no CUDA libraries for LibTorch: targets that need them are skipped"
  rm -rf "$wheels"
}

unpack_wheels() {
  local into="$1" wheels="$TRAINWRECK_CACHE/wheels"
  download_torch "$wheels"
  rm -rf "$into.tmp" && mkdir -p "$into.tmp"
  unzip -q -o "$wheels"/torch-"$TORCH_VERSION"-*.whl 'torch/include/*' 'torch/lib/libtorch_cpu.so' \
    'torch/lib/libc10.so' 'torch/lib/libgomp*' 'torch/lib/libtorch.so' 'torch/lib/libshm.so' \
    -d "$into.tmp" || [ "$?" -eq 11 ]
  mv "$into.tmp/torch/include" "$into.tmp/torch/lib" "$into.tmp/"
  rmdir "$into.tmp/torch"
  if wants_cuda_libraries; then unpack_cuda_libraries "$into.tmp" "$wheels"; fi
  if ! link_cuda_runtime "$into.tmp"; then
    python3 -m pip download -q --no-deps -d "$wheels" --only-binary=:all: \
      "nvidia-cuda-runtime==$CUDA_RUNTIME_VERSION" "nvidia-cuda-cupti==$CUDA_CUPTI_VERSION" >&2
    local wheel
    for wheel in "$wheels"/nvidia_cuda_*.whl; do
      unzip -q -o -j "$wheel" '*/libcudart.so.13' '*/libcupti.so.13' -d "$into.tmp/lib" 2>/dev/null || [ "$?" -eq 11 ]
    done
  fi
  rm -rf "$into" && mv "$into.tmp" "$into"
  rm -rf "$wheels"
}

find_libtorch() {
  local candidate
  if [ -n "${TORCH_HOME:-}" ]; then
    is_libtorch "$TORCH_HOME" || die "TORCH_HOME=$TORCH_HOME holds no LibTorch (lib/libtorch_cpu.so, include/)"
    candidate="$(torch_version_of "$TORCH_HOME")"
    refuse_old_torch "${candidate:-0.0}" "TORCH_HOME=$TORCH_HOME (LibTorch ${candidate:-of unknown version})"
    return 0
  fi
  refuse_old_torch "$TORCH_VERSION" "TORCH_VERSION=$TORCH_VERSION"
  for candidate in /opt/libtorch /usr/local/libtorch "$TRAINWRECK_CACHE/libtorch-$TORCH_VERSION"; do
    is_libtorch "$candidate" || continue
    [ -z "$WANTED_TORCH" ] || [ "$(torch_version_of "$candidate")" = "$WANTED_TORCH" ] || continue
    TORCH_HOME="$candidate"
    return 0
  done
  TORCH_HOME="$TRAINWRECK_CACHE/libtorch-$TORCH_VERSION"
  unpack_wheels "$TORCH_HOME"
  is_libtorch "$TORCH_HOME" || die "unpacking LibTorch into $TORCH_HOME failed"
}

# versions_of PACKAGE...: one word. Another one when any of them is installed in another version, or no more.
versions_of() {
  { dpkg-query -W -f '${binary:Package} ${Version} ${db:Status-Status}\n' "$@" 2>/dev/null ||
      true; } | sort | sha256sum | cut -c 1-12
}

# .bazelrc.local is read by .bazelrc; it is rewritten only when it changes, so that Bazel keeps its cache.
# What the compiler, its headers and the system's libraries are is no input that Bazel sees. Their versions are in the environment of
# each action instead, so that a cache which machines share answers for those alone that have the same.
write_bazelrc_local() {
  local file="$REPO_ROOT/.bazelrc.local" text built run
  built="$(versions_of "${DEBIAN_PACKAGES[@]%%:*}" binutils cpp-12 g++-12 libc6-dev libstdc++-12-dev)"
  if [ -n "${CUDA_HOME:-}" ]; then built+="-$("$CUDA_HOME/bin/nvcc" --version | sha256sum | cut -c 1-12)"; fi
  run="$(versions_of chromium faketime iproute2 libc6 nftables openmpi-bin python3 python3-minimal python3-torch munge \
    postgresql slurm-client slurmctld slurmd util-linux)"
  text="build --repo_env=TORCH_HOME=$TORCH_HOME"
  text+=$'\n'"build --action_env=TRAINWRECK_BUILT_WITH=$built"
  text+=$'\n'"test --test_env=TRAINWRECK_RUN_WITH=$run"
  if [ -n "${CUDA_HOME:-}" ]; then text+=$'\n'"build --repo_env=CUDA_HOME=$CUDA_HOME"; fi
  [ -f "$file" ] && [ "$(cat "$file")" = "$text" ] || printf '%s\n' "$text" >"$file"
}

setup() {
  install_debian_packages
  install_what_tests_need
  BAZEL="${BAZEL:-$(command -v bazel)}"
  if [ -z "${CUDA_HOME:-}" ] && [ -x /usr/local/cuda/bin/nvcc ]; then CUDA_HOME=/usr/local/cuda; fi
  if [ -z "${WITHOUT_TORCH:-}" ]; then
    find_libtorch
    complete_with_cuda
    write_bazelrc_local
  fi
  export BAZEL TORCH_HOME REPO_ROOT
}

setup
