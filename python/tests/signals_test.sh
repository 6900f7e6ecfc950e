#!/usr/bin/env bash
exec python3 python/tests/signals_test.py
