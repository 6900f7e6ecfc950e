#!/usr/bin/env bash
exec python3 python/tests/pytest_test.py harness/cli/trainwreck docs/guide/targets.md
