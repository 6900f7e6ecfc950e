#!/usr/bin/env bash
exec python3 tests/stacks_tables_test.py harness/cli/trainwreck tests/stacks "$@"
