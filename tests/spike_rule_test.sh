#!/usr/bin/env bash
exec python3 tests/spike_rule_test.py tools/spike_rule.py
