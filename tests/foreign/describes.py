#!/usr/bin/env python3
"""A target of level 2 of somebody's own: its model (a parabola), its fault (weights.nudge), and the whole protocol."""
import json
import os
import sys

DESCRIPTION = {
    "protocol": 1, "name": "describes", "version": os.environ.get("HELLO", "-"),
    "recipe": [{"name": "steps", "type": "int", "default": 30, "min": 1}, {"name": "lr", "type": "number", "default": 0.1},
               {"name": "guard", "type": "bool", "default": False}],
    "signals": [{"name": "loss", "scale": "log"}],
    "faults": [{"name": "weights.nudge", "doc": "Adds to the weight.", "evidence": "the weight",
                "params": [{"name": "by", "type": "number", "default": 5.0}]}],
    "features": ["device:cpu"],
}


def acts(fault, step):
    return step == fault["trigger"].get("at", step)


def main():
    if sys.argv[1:] == ["--describe"]:
        print(json.dumps(DESCRIPTION))
        return
    with open(os.environ["TRAINWRECK_PLAN"], encoding="utf-8") as file:
        plan = json.load(file)
    recipe = plan["recipe"]
    trace = open(os.path.join(os.environ["TRAINWRECK_TRACE"], "rank0.jsonl"), "a", encoding="utf-8", buffering=1)

    def write(kind, **fields):
        trace.write(json.dumps({"t": kind, **fields}) + "\n")

    write("start", rank=0)
    weight, guarded = 4.0, 4.0
    for step in range(recipe["steps"]):
        for fault in plan["faults"]:
            if fault["fault"] == "weights.nudge" and acts(fault, step):
                write("event", event="fired", id=fault["id"], step=step, before=weight, after=weight + fault["with"]["by"])
                weight += fault["with"]["by"]
        if recipe["guard"] and abs(weight) > 2 * abs(guarded) + 1:
            weight = guarded
        guarded = weight
        write("step", step=step, time=step / 1000, loss=weight * weight + 0.01)
        weight -= recipe["lr"] * 2 * weight
    write("end", why="completed", step=recipe["steps"])


main()
