#!/usr/bin/env bash
exec python3 tests/guarded_launchers_test.py harness/cli/trainwreck
