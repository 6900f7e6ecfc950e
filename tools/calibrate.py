#!/usr/bin/env python3
"""Measures what a recipe or a fault really does, over seeds, before a scenario claims it.

  tools/calibrate.py --trainer bazel-bin/trainer/trainwreck-trainer --seeds 10 \
      steps=120 model.norm=post optimizer.kind=sgd optimizer.lr=0.1 \
      --vary optimizer.lr=0.1,0.3,1,3 --fault '{"id":"x","fault":"data.corrupt_sample","with":{...}}'

Prints one line per variant: minimum / median / maximum over the seeds of the final loss (mean of the last
tenth of the steps), the first step with a non-finite loss, and the largest ratio of grad_norm to the median
of the 8 steps before it, taken over the finite part.
"""
import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor


def parse_value(text):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def parse_number(value):
    return float(value) if not isinstance(value, str) else float(value.replace("inf", "inf"))


def run(trainer, recipe, faults, seed, record, extra):
    with tempfile.TemporaryDirectory() as folder:
        plan = {"protocol": 1, "run": "calibrate", "seed": seed, "recipe": recipe, "faults": faults,
                "checkpoint_dir": folder + "/checkpoints", "record": record, **extra}
        with open(folder + "/plan.json", "w", encoding="utf-8") as file:
            json.dump(plan, file)
        env = dict(os.environ, TRAINWRECK_PLAN=folder + "/plan.json", TRAINWRECK_TRACE=folder, RANK="0",
                   WORLD_SIZE="1", LOCAL_RANK="0", OMP_NUM_THREADS="1")
        done = subprocess.run([trainer], env=env, capture_output=True, text=True, check=False)
        steps, events = [], []
        try:
            with open(folder + "/rank0.jsonl", encoding="utf-8") as file:
                for line in file:
                    record_ = json.loads(line)
                    (steps if record_["t"] == "step" else events).append(record_)
        except FileNotFoundError:
            pass
        if done.returncode != 0:
            events.append({"t": "failed", "stderr": done.stderr[-300:]})
        return steps, events


def summarise(steps):
    loss = [parse_number(step["loss"]) for step in steps]
    norm = [parse_number(step["grad_norm"]) for step in steps]
    tail = loss[-max(1, len(loss) // 10):]
    first_bad = next((i for i, x in enumerate(loss) if not math.isfinite(x)), math.inf)
    spike = 0.0
    for i in range(1, len(norm)):
        before = norm[max(0, i - 8):i]
        if not all(map(math.isfinite, before)):
            break
        if not math.isnan(norm[i]):
            spike = max(spike, norm[i] / max(statistics.median(before), 1e-30))
    return {"final": sum(tail) / len(tail), "first_nonfinite": first_bad, "spike": spike,
            "max_loss": max([x for x in loss if math.isfinite(x)], default=math.nan)}


def triple(values):
    values = sorted(values, key=lambda x: (math.isnan(x), x))
    return " / ".join(f"{v:.4g}" for v in (values[0], values[len(values) // 2], values[-1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--vary", action="append", default=[], help="KEY=V1,V2,...")
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--record", action="append", default=[])
    parser.add_argument("--show", action="append", default=[], help="a Python expression over `steps` and `events`")
    parser.add_argument("recipe", nargs="*", help="KEY=VALUE")
    options = parser.parse_intermixed_args()
    described = json.loads(subprocess.run([options.trainer, "--describe"], capture_output=True, text=True,
                                          check=True).stdout)
    base = {key["name"]: key["default"] for key in described["recipe"]}
    for text in options.recipe:
        key, value = text.split("=", 1)
        if key not in base:
            sys.exit(f"no recipe key {key}")
        base[key] = parse_value(value)
    axes = [[(text.split("=", 1)[0], parse_value(v)) for v in text.split("=", 1)[1].split(",")]
            for text in options.vary]
    faults = [dict({"with": {}, "trigger": {}}, **json.loads(text)) for text in options.fault]
    for point in itertools.product(*axes):
        recipe = dict(base, **dict(point))
        with ThreadPoolExecutor(options.jobs) as pool:
            runs = list(pool.map(lambda seed: run(options.trainer, recipe, faults, seed, options.record, {}),
                                 range(options.seeds)))
        name = " ".join(f"{key}={value}" for key, value in point) or "(base)"
        whole = [steps for steps, _ in runs if steps]
        if not whole:
            print(f"{name}: no steps; {runs[0][1][-1:]}")
            continue
        rows = [summarise(steps) for steps in whole]
        print(name + "  " + "  ".join(f"{key} {triple([row[key] for row in rows])}" for key in rows[0]),
              flush=True)
        for expression in options.show:
            values = [eval(expression, {"steps": steps, "events": events, "math": math,  # pylint: disable=eval-used
                                        "statistics": statistics, "num": parse_number}) for steps, events in runs]
            print(f"    {expression}: {values}")


if __name__ == "__main__":
    main()
