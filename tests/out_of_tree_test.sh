#!/usr/bin/env bash
exec python3 tests/out_of_tree_test.py "$(dirname "$(dirname "$(readlink -f "$0")")")" harness/cli/trainwreck \
  tests/out_of_tree_mutant external/out_of_tree_example
