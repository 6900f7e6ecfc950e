#!/usr/bin/env bash
exec python3 tests/targets_docs_test.py docs/targets.md harness/cli/trainwreck
