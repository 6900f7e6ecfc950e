#!/usr/bin/env bash
exec python3 tests/cuda/cuda_binary_test.py "$@"
