#!/usr/bin/env bash
exec python3 tests/fixture_test.py tests/bad_scenarios/target.json trainer/trainwreck-trainer
