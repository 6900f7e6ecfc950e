#!/usr/bin/env bash
exec python3 python/tests/parsers_test.py
