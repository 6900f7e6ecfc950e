#!/usr/bin/env bash
# Every family has a scenario with the tag `smoke`, so that `-t smoke` reaches each part of the suite. A scenario that
# every machine without a GPU skips does not count. Those have the tag `gpu`, by which ci/gpu_check.py finds them.
set -euo pipefail

# Whether a scenario has the tag, and runs without a GPU.
counts() {
  grep --quiet --extended-regexp '^tags: (smoke|\[(.*, )?smoke(, .*)?\])$' "$1" &&
    ! grep --quiet '^requires: .*cuda' "$1"
}

# Prints the families below $1 that have none; `portable` and `negative` are not of the reference suite.
families_without() {
  local family file found
  for family in "$1"/*/; do
    family=$(basename "$family")
    if [[ $family == portable || $family == negative ]]; then continue; fi
    found=no
    for file in "$1/$family"/*.yaml; do
      if counts "$file"; then found=yes; fi
    done
    if [[ $found == no ]]; then echo "$family"; fi
  done
}

# Prints the scenarios below $1 that only a GPU can run, and that have no tag `gpu`.
hidden_from_gpus() {
  local file
  for file in "$1"/*/*.yaml; do
    if grep --quiet --extended-regexp '^requires: .*devices: (cuda|\[cuda\])' "$file" &&
      ! grep --quiet --extended-regexp '^tags: (gpu|\[(.*, )?gpu(, .*)?\])$' "$file"; then
      basename "$file" .yaml
    fi
  done
}

missing=$(families_without scenarios)
if [[ -n $missing ]]; then
  echo "no scenario with the tag smoke in: $missing"
  exit 1
fi

hidden=$(hidden_from_gpus scenarios)
if [[ -n $hidden ]]; then
  echo "only a GPU can run these, so they need the tag gpu: $hidden"
  exit 1
fi

# The check itself: without the tag in one family, that family is named; so it is if only a GPU runs the scenario.
copy=$TEST_TMPDIR/scenarios
cp --recursive --dereference scenarios "$copy"
chmod --recursive u+w "$copy"
sed --in-place '/^tags:/s/smoke/slow/' "$copy"/oom/*.yaml
sed --in-place '/^tags:.*smoke/a requires: {devices: [cuda]}' "$copy"/variance/*.yaml
seen=$(families_without "$copy" | tr '\n' ' ')
if [[ $seen != "oom variance " ]]; then
  echo "expected oom and variance to be named, seen: $seen"
  exit 1
fi

untagged=$TEST_TMPDIR/untagged
cp --recursive --dereference scenarios "$untagged"
chmod --recursive u+w "$untagged"
sed --in-place '/^tags:/s/gpu/slow/' "$untagged"/twins/tf32.yaml "$untagged"/variance/*.yaml
seen=$(hidden_from_gpus "$untagged" | tr '\n' ' ')
if [[ $seen != "tf32 atomics " ]]; then
  echo "expected tf32 and atomics to be named, seen: $seen"
  exit 1
fi
