"""Writes into its trace the gradient of each layer, and events, one of them on demand (level 1)."""
import json
import os
import sys

steps, rate = int(sys.argv[1]), float(sys.argv[2])
with open(os.environ["TRAINWRECK_PLAN"], encoding="utf-8") as file:
    record = json.load(file)["record"]
weights, settled = [1.0, 2.0], False
with open(os.environ["TRAINWRECK_TRACE"] + "/rank0.jsonl", "a", encoding="utf-8", buffering=1) as trace:
    def write(kind, **fields):
        trace.write(json.dumps({"t": kind, **fields}) + "\n")

    write("start", rank=0)
    for step in range(steps):
        loss = sum(weight * weight for weight in weights) / 2
        norms = {"gradient{layers.%d}" % layer: weight for layer, weight in enumerate(weights)}
        write("step", step=step, time=step / 1000, loss=loss, **norms)
        if loss < 0.1 and not settled:
            settled = True
            write("event", event="settled", step=step, layers=len(weights))
        if "largest" in record:
            write("event", event="largest", step=step, layer=weights.index(max(weights)))
        weights = [(1 - rate) * weight for weight in weights]
    write("end", why="completed", step=steps)
