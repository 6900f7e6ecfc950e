#!/usr/bin/env bash
exec python3 tests/protocol_page_test.py docs/reference/protocol.md harness/cli/trainwreck harness/launch/fake_target
