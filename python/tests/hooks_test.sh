#!/usr/bin/env bash
exec python3 python/tests/hooks_test.py
