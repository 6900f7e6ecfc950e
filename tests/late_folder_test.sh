#!/usr/bin/env bash
exec python3 tests/late_folder_test.py harness/cli/trainwreck
