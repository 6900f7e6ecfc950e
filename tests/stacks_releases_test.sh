#!/usr/bin/env bash
exec python3 tests/stacks_releases_test.py harness/cli/trainwreck tests/stacks "$@"
