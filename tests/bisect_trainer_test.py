#!/usr/bin/env python3
"""Bisects real regressions of training, run by the reference trainer.

The repositories hold a layer of settings around the trainer, as a team's own launcher is: train.py reads the plan, lets
stack.py change the recipe, and starts the trainer. Each repository has 66 commits, one of which loses something that
training needs; some cannot be imported, some change comments only, some belong to a merged branch.

Usage: bisect_trainer_test.py TRAINWRECK TRAINER SCENARIO
"""
import os
import shutil
import subprocess
import sys
import tempfile

TRAIN = r'''#!/usr/bin/env python3
import json, os, subprocess, sys
import stack
trainer = os.environ["TRAINER"]
if "--describe" in sys.argv:
    description = json.loads(subprocess.check_output([trainer, "--describe"]))
    description["features"].remove("fork-server")
    print(json.dumps(description))
    sys.exit(0)
with open(os.environ["TRAINWRECK_PLAN"]) as file:
    plan = json.load(file)
stack.change(plan["recipe"])
os.environ["TRAINWRECK_PLAN"] = os.environ["TRAINWRECK_TRACE"] + "/changed_plan.json"
with open(os.environ["TRAINWRECK_PLAN"], "w") as file:
    json.dump(plan, file)
os.execv(trainer, [trainer])
'''

COUNT = 66
BROKEN = (9, 23, 24, 50)
COMMENTS = (12, 33, 34, 60)
BRANCH = range(40, 46)  # a side branch from 35, merged by 46

# What is lost, at which commit, and the claim that sees it.
REGRESSIONS = (
    ("the clip", 32, 'recipe["optimizer.clip_norm"] = 0.0', "remedy_ineffective ('blows_up' in clip)"),
    ("the scale of the learning rate", 43, 'recipe["optimizer.lr"] *= 0.01', "control_unhealthy ('learns' in control)"),
)


def descends(commit, culprit):
    """Whether `culprit` is `commit` or an ancestor of it."""
    if culprit in BRANCH:
        return commit >= culprit if commit in BRANCH else commit >= 46
    return commit >= culprit and not (commit in BRANCH and culprit > 35)


def stack(commit, culprit, line):
    text = f"# commit {commit}\ndef change(recipe):\n    pass\n"
    if commit not in COMMENTS:
        text += f"version = {commit}\n"
    if descends(commit, culprit):
        text = text.replace("    pass\n", f"    {line}\n")
    return text + ("broken =\n" if commit in BROKEN else "")


def make_repository(folder, culprit, line):
    stream = []

    def data(text):
        return f"data {len(text.encode())}\n{text}\n"

    for commit in range(COUNT):
        stream.append(f"commit refs/heads/main\nmark :{commit + 1}\ncommitter t <t@t> {10**6 + commit} +0000\n")
        stream.append(data(f"commit {commit}"))
        parent = {40: 35, 46: 39}.get(commit, commit - 1)
        if commit > 0:
            stream.append(f"from :{parent + 1}\n")
        if commit == 46:
            stream.append("merge :46\n")
        stream.append("M 100755 inline train.py\n" + data(TRAIN))
        stream.append("M 100644 inline stack.py\n" + data(stack(commit, culprit, line)))
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], input="".join(stream), text=True, check=True, cwd=folder)
    subprocess.run(["git", "checkout", "-q", "main"], check=True, cwd=folder)
    lines = subprocess.run(["git", "log", "--format=%H %s", "main"], check=True, cwd=folder, capture_output=True,
                           text=True).stdout.splitlines()
    ids = {int(line.split()[2]): line.split()[0] for line in lines}
    assert len(ids) == COUNT, len(ids)
    return ids


def main():
    trainwreck, trainer, scenario = map(os.path.abspath, sys.argv[1:])
    failures = []
    for what, culprit, line, named in REGRESSIONS:
        folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        ids = make_repository(folder, culprit, line)
        done = subprocess.run(
            [trainwreck, "bisect", scenario, "--good", ids[0], "--bad", ids[COUNT - 1], "--target", "train.py"], cwd=folder, capture_output=True, text=True, check=False,
            env={**os.environ, "TRAINER": trainer, "TRAINWRECK_CACHE": folder + ".cache"})
        blamed = done.stdout.partition("\nculprit\n")[2].partition("confidence")[0].split()
        right = done.returncode == 0 and blamed and ids[culprit].startswith(blamed[0]) and named in done.stdout
        print(f"{what}: {'found' if right else 'NOT FOUND'}")
        if not right:
            failures.append(what)
            print(done.stdout, done.stderr)
        shutil.rmtree(folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
