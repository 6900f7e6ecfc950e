#!/usr/bin/env bash
exec python3 tests/two_machines_test.py harness/cli/trainwreck trainer/trainwreck-trainer
