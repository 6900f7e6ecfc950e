#!/usr/bin/env bash
exec python3 python/tests/options_test.py
