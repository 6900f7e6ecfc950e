#!/usr/bin/env bash
exec python3 python/tests/kernels_test.py
