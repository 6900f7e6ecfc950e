"""A program that writes trainwreck's trace with six lines of its own (level 1)."""
import json
import os
import sys
import time

with open(os.path.join(os.environ["TRAINWRECK_TRACE"], "rank0.jsonl"), "a", encoding="utf-8", buffering=1) as trace:
    trace.write(json.dumps({"t": "start", "rank": 0}) + "\n")
    for step in range(int(sys.argv[1])):
        loss = (1 - float(sys.argv[2])) ** step
        trace.write(json.dumps({"t": "step", "step": step, "time": step / 1000, "loss": loss}) + "\n")
        time.sleep(float(sys.argv[3]))
    trace.write(json.dumps({"t": "end", "why": "completed", "step": int(sys.argv[1])}) + "\n")
