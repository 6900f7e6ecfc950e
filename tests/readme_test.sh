#!/usr/bin/env bash
exec python3 tests/readme_test.py README.md scenarios harness/cli/trainwreck trainer/trainwreck-trainer
