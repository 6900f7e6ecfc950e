#!/usr/bin/env bash
# Installs both programs, the scenarios, their JSON Schema and the documents: bazel run //:install -- --prefix DIR
# [--with-libtorch]. What is installed may be moved. With --with-libtorch it brings the libraries of LibTorch (0.5 GB), for a
# machine that has none; without, the trainer uses those that it was built with.
set -euo pipefail

usage() { echo "usage: bazel run //:install -- --prefix DIR [--with-libtorch]" >&2; exit 2; }
prefix="" with_libtorch=""
while [ $# -gt 0 ]; do
  case "$1" in
    --prefix) [ $# -ge 2 ] || usage; prefix="$2"; shift 2 ;;
    --with-libtorch) with_libtorch=1; shift ;;
    *) usage ;;
  esac
done
[ -n "$prefix" ] || usage
case "$prefix" in /*) ;; *) prefix="${BUILD_WORKING_DIRECTORY:-$PWD}/$prefix" ;; esac

bin="$prefix/bin" share="$prefix/share/trainwreck" lib="$prefix/lib/trainwreck"
mkdir -p "$bin"
rm -rf "$share" "$lib"
mkdir -p "$share"
# -p: a test runs this with the current folder on PATH, and this script is `install` there.
command -p install -m 755 harness/cli/trainwreck trainer/trainwreck-trainer "$bin/"
if [ -n "$with_libtorch" ]; then
  mkdir -p "$lib"
  mv "$bin/trainwreck-trainer" "$lib/"
  # What the linker finds outside of the system's own folders.
  ldd "$lib/trainwreck-trainer" | awk '$3 ~ /^\// && $3 !~ /^\/(usr\/)?lib/ { print $3 }' | while read -r library; do
    cp -L "$library" "$lib/"
  done
  # The digest: what a target says of itself is kept by the digest of its file, which is this one.
  cat >"$bin/trainwreck-trainer" <<END
#!/bin/sh
# $(sha256sum "$lib/trainwreck-trainer" | cut -d ' ' -f 1)
prefix="\$(dirname "\$(dirname "\$(readlink -f "\$0")")")"
lib="\$prefix/lib/trainwreck"
LD_LIBRARY_PATH="\$lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" exec "\$lib/trainwreck-trainer" "\$@"
END
  chmod 755 "$bin/trainwreck-trainer"
fi
mkdir -p "$lib"
command -p install -m 644 preload/libtrainwreck_nccl.so "$lib/"
find -L scenarios -name '*.yaml' | while read -r file; do
  command -p install -D -m 644 "$file" "$share/$file"
done
# Not executable: Python finds them by PYTHONPATH.
(cd python/packed && find -L trainwreck -type f) | while read -r file; do
  command -p install -D -m 644 "python/packed/$file" "$share/python/$file"
done
# In the folders that they have here, so that their links lead somewhere.
find -L README.md ARCHITECTURE.md docs -name '*.md' | while read -r file; do
  command -p install -D -m 644 "$file" "$share/doc/$file"
done
"$bin/trainwreck" schema --target "$bin/trainwreck-trainer" --scenarios-root "$share/scenarios" >"$share/scenario.schema.json"
"$bin/trainwreck" schema --defaults --target "$bin/trainwreck-trainer" --scenarios-root "$share/scenarios" >"$share/defaults.schema.json"
echo "installed in $prefix: try $bin/trainwreck doctor"
