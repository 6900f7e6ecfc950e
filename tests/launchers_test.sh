#!/usr/bin/env bash
exec python3 tests/launchers_test.py harness/cli/trainwreck trainer/trainwreck-trainer
