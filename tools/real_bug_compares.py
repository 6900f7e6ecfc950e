#!/usr/bin/env python3
"""Asks `trainwreck compare` whether a trainer with a planted bug differs from the unchanged one: an oracle of tools/real_bugs.py.

    tools/real_bugs.py plant --set all --without-run --results compared.jsonl --oracle \\
        'python3 {tree}/tools/real_bug_compares.py {trainwreck} {trainer} {tree}/tests/real_bugs/recipes {out} /tmp/unchanged'

Runs each scenario below the folder with five seeds. The first call keeps what it saw in the last folder; the calls after
it compare with that, print what compare says of verdicts, bits and margins, and end with exit status 1 when it finds a difference.
"""
import json
import pathlib
import shutil
import subprocess
import sys

SEEDS = "5"
SAME, WORSE, CHANGED = 0, 1, 8


def main():
    trainwreck, trainer, recipes, out, unchanged = sys.argv[1:]
    subprocess.run([trainwreck, "run", recipes, "--scenarios-root", recipes, "--target", trainer, "--seeds", SEEDS,
                    "--output", out, "--history", "none", "--keep", "none", "--color", "never"], check=False, stdout=subprocess.DEVNULL)
    verdicts, unchanged = pathlib.Path(out) / "verdicts.json", pathlib.Path(unchanged)
    if not verdicts.exists():
        sys.exit(2)
    if not unchanged.exists():
        judged = json.loads(verdicts.read_text(encoding="utf-8"))["verdicts"]
        broken = [f"{verdict['case']}: {verdict['class']}" for verdict in judged if verdict["verdict"] == "error"]
        if broken:  # as a timeout on a busy machine, which every bug would seem to differ from
            print("the unchanged trainer's runs did not end well:", ", ".join(broken), file=sys.stderr)
            sys.exit(2)
        unchanged.mkdir(parents=True)
        shutil.move(verdicts, unchanged)
        return 0
    done = subprocess.run([trainwreck, "compare", unchanged / "verdicts.json", verdicts, "--color", "never"], check=False,
                          capture_output=True, text=True)
    verdicts.unlink()  # `plant` would take them for the answer; the recipes' own verdicts are none
    if done.returncode not in (SAME, WORSE, CHANGED):
        sys.exit(2)
    if done.returncode == SAME:
        return 0
    print(*(line for line in done.stdout.splitlines() if line.startswith(("# bits", "# verdicts", "# margins"))), sep="\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
