#!/usr/bin/env bash
exec python3 tests/bisect_trainer_test.py harness/cli/trainwreck harness/trainer/trainwreck-trainer \
  harness/trainer/regressions/link_inputs.txt tests
