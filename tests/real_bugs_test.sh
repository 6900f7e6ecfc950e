#!/usr/bin/env bash
exec python3 tests/real_bugs_test.py tools/real_bugs.py
