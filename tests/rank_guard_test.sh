#!/usr/bin/env bash
exec python3 tests/rank_guard_test.py harness/cli/trainwreck
