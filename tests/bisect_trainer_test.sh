#!/usr/bin/env bash
# The regressions of the launcher, or those of the trainer's sources: the argument is what they change.
exec python3 tests/bisect_trainer_test.py harness/cli/trainwreck tests "$1"
