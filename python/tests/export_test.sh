#!/usr/bin/env bash
exec python3 python/tests/export_test.py harness/cli/trainwreck harness/launch/fake_target
