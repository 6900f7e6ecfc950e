#!/usr/bin/env bash
exec python3 tests/swarm_rules_test.py docs/reference/protocol.md harness/cli/trainwreck
