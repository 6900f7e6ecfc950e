#!/usr/bin/env bash
exec python3 tests/cuda/gpu_bundle_test.py "$@"
