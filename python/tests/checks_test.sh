#!/usr/bin/env bash
exec python3 python/tests/checks_test.py
