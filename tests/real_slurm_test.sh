#!/usr/bin/env bash
exec python3 tests/real_slurm_test.py harness/cli/trainwreck harness/launch/fake_target trainer/trainwreck-trainer
