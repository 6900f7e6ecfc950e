#!/usr/bin/env bash
exec python3 tests/targets_docs_test.py docs/guide/targets.md harness/cli/trainwreck
