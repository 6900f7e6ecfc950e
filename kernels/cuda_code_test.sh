#!/usr/bin/env bash
exec python3 kernels/cuda_code_test.py "$@"
