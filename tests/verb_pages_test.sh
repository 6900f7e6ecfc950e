#!/usr/bin/env bash
exec python3 tests/verb_pages_test.py harness/cli/trainwreck trainer/trainwreck-trainer scenarios harness/pages/testdata
