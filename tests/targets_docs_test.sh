#!/usr/bin/env bash
set -e
check() { python3 tests/targets_docs_test.py harness/cli/trainwreck "$@"; }
check docs/guide/targets.md 5 6
check docs/guide/stack.md 5 3
check docs/guide/bisect.md 1 1
