#!/usr/bin/env bash
exec python3 python/tests/rank_faults_test.py
