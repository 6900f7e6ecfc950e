#!/usr/bin/env bash
exec python3 tests/bisect_trainer_test.py harness/cli/trainwreck trainer/trainwreck-trainer \
  trainer/regressions/link_inputs.txt tests
