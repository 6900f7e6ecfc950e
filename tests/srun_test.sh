#!/usr/bin/env bash
exec python3 tests/srun_test.py harness/cli/trainwreck tests/stacks
