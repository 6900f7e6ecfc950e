#!/usr/bin/env python3
"""The reference trainer with one thing broken, to see the suite go red. A target like any other.

MUTATION says what is broken, TRAINER is the real program:
  noop_injector    the faults of the plan are not performed
  ignore_remedy    remedy arms train with the recipe that their run would have without the remedy
  constant_loss    every loss in the trace is 2.0
  nondeterministic the loss of step 3 carries the process id
"""
import json
import os
import subprocess
import sys
import tempfile


def rewrite_trace(source, target, rewrite):
    for name in sorted(os.listdir(source)):
        if not name.endswith(".jsonl"):  # evidence of a failing step
            continue
        with open(os.path.join(source, name), encoding="utf-8") as lines, \
             open(os.path.join(target, name), "a", encoding="utf-8") as out:
            for line in lines:
                record = json.loads(line)
                if record["t"] == "step":
                    rewrite(record)
                out.write(json.dumps(record) + "\n")


def main():
    trainer, mutation = os.environ["TRAINER"], os.environ["MUTATION"]
    if "--describe" in sys.argv:
        told = subprocess.run([trainer, "--describe"], check=True, capture_output=True, text=True)
        description = json.loads(told.stdout)
        description["features"].remove("fork-server")  # which this program is not
        print(json.dumps(description))
        return 0
    with open(os.environ["TRAINWRECK_PLAN"], encoding="utf-8") as file:
        plan = json.load(file)
    if mutation == "noop_injector":
        plan["faults"] = []
    if mutation == "ignore_remedy":
        # IGNORED: {"remedy": {"recipe key": value without the remedy}}
        plan["recipe"].update(json.loads(os.environ["IGNORED"]).get(plan["arm"], {}))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(plan, file)
        env = dict(os.environ, TRAINWRECK_PLAN=path)
        trace = env["TRAINWRECK_TRACE"]
        if mutation not in ("constant_loss", "nondeterministic"):
            return subprocess.run([trainer], env=env, check=False).returncode
        env["TRAINWRECK_TRACE"] = os.path.join(folder, "trace")
        os.mkdir(env["TRAINWRECK_TRACE"])
        code = subprocess.run([trainer], env=env, check=False).returncode

        def rewrite(record):
            if mutation == "constant_loss":
                record["loss"] = 2.0
            elif record["step"] == 3:
                record["loss"] += os.getpid() * 1e-9

        rewrite_trace(env["TRAINWRECK_TRACE"], trace, rewrite)
        return code


if __name__ == "__main__":
    sys.exit(main())
