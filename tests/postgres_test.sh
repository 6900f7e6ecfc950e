#!/usr/bin/env bash
exec python3 tests/postgres_test.py harness/cli/trainwreck harness/launch/fake_target harness/history/history_test docs/guide/history.md
