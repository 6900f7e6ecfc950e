#!/usr/bin/env bash
exec python3 tests/wheel_test.py harness/cli/trainwreck docs/guide/targets.md
