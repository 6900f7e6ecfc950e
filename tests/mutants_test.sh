#!/usr/bin/env bash
exec python3 tests/mutants_test.py tools/mutants.py
