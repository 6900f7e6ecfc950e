"""Starts a program of level 2 as one that performs no faults: without_faults.py PROGRAM [ARGUMENT...]

The plan that it gets has the recipe alone; what is broken is done from outside.
"""
import json
import os
import sys

with open(os.environ["TRAINWRECK_PLAN"], encoding="utf-8") as file:
    plan = json.load(file)
path = f"{os.environ['TRAINWRECK_TRACE']}/plan.without_faults.rank{os.environ['RANK']}.json"
with open(path, "w", encoding="utf-8") as file:
    json.dump({**plan, "faults": []}, file)
os.environ["TRAINWRECK_PLAN"] = path
os.execv(sys.argv[1], sys.argv[1:])
