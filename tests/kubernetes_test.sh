#!/usr/bin/env bash
exec python3 tests/kubernetes_test.py harness/cli/trainwreck harness/launch/fake_target
