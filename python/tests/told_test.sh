#!/usr/bin/env bash
exec python3 python/tests/told_test.py
