#!/usr/bin/env python3
"""Says where a trainer with a planted bug first differs from the unchanged one, whatever that means: an oracle of
tools/real_bugs.py that tells a bug that nothing noticed from one that does nothing.

    tools/real_bugs.py plant --set open --without-run --results acts.jsonl --oracle \\
        'python3 {tree}/tools/real_bug_acts.py {trainwreck} {trainer} {tree}/tests/real_bugs/recipes {out} /tmp/unchanged.json'

Runs control of each scenario below the folder once. The first call writes what it saw into the file; the calls after it compare,
print a line for each rank that differs, and then end with exit status 1. A further argument is the root that names of scenarios
count from, where it is not that folder.
"""
import json
import pathlib
import subprocess
import sys

# Of the machine, not of the run.
MEASURED = ("time", "step_s", "data_s", "comm_s")


def read_traces(out):
    """The steps of each rank, by the trace's path."""
    traces = {}
    for path in sorted(out.rglob("rank*.jsonl")):
        records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        traces[str(path.relative_to(out))] = [{key: value for key, value in record.items()
                                               if key not in MEASURED and not key.startswith("memory_")}
                                              for record in records if record["t"] == "step"]
    return traces


def first_difference(before, after):
    """In words, empty where the steps of a rank are the same."""
    for old, new in zip(before, after):
        signals = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        if signals:
            return f"step {old['step']}: {', '.join(signals)}"
    return "" if len(before) == len(after) else f"{len(after)} steps instead of {len(before)}"


def main():
    trainwreck, trainer, recipes, out, unchanged, *root = sys.argv[1:]
    done = subprocess.run([trainwreck, "run", recipes, "--scenarios-root", *(root or [recipes]), "--target", trainer, "--arm", "control", "--seed",
                           "1", "--output", out, "--history", "none", "--keep", "all", "--color", "never"], check=False,
                          stdout=subprocess.DEVNULL)
    traces, unchanged = read_traces(pathlib.Path(out)), pathlib.Path(unchanged)
    if done.returncode not in (0, 1, 5, 7) or not (traces or unchanged.exists()):
        sys.exit(2)
    if not unchanged.exists():
        unchanged.write_text(json.dumps(traces), encoding="utf-8")
    before = json.loads(unchanged.read_text(encoding="utf-8"))
    found = {path: first_difference(before[path], traces.get(path, [])) for path in before}
    print(*(f"{path.removesuffix('.jsonl')} {what}" for path, what in found.items() if what), sep="\n")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
