#!/usr/bin/env bash
exec python3 preload/nccl_shim_test.py preload/libtrainwreck_nccl.so preload/libnccl.so.2 preload/call_nccl
