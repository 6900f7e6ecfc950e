#!/usr/bin/env bash
exec python3 tests/page_test.py harness/cli/trainwreck trainer/trainwreck-trainer scenarios
