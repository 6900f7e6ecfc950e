#!/usr/bin/env bash
exec python3 tests/cuda/gpu_check_test.py ci
