#!/usr/bin/env bash
exec python3 tests/foreign_test.py harness/cli/trainwreck tests/foreign preload/libnccl.so.2
