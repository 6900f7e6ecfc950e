#!/usr/bin/env python3
"""Bisects real regressions of training.

Two kinds of generated repositories, of 66 commits each: some cannot be built, some change comments only, some belong to a
merged branch, and from one on training has lost something that it needs.

* The trainer's own sources: the files that optimizers, schedules and clipping are made of, with the line of one of them
  changed. Each commit's build links a trainer of its own. An object file is taken from where Bazel compiled that very
  text (comments aside), as a compiler cache would; a text that nobody compiled is compiled, which is for the broken ones.
* A launcher around the trainer, as a team's own is: train.py reads the plan, lets stack.py change the recipe, and starts
  the trainer. Nothing is built.

Usage: bisect_trainer_test.py TRAINWRECK SCENARIOS LINK_INPUTS    of the sources
       bisect_trainer_test.py TRAINWRECK SCENARIOS TRAINER        of the launcher
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

COUNT = 66
BROKEN = (9, 23, 24, 50)
COMMENTS = (12, 33, 34, 60)
BRANCH = range(40, 46)  # a side branch from 35, merged by 46


def descends(commit, culprit):
    """Whether `culprit` is `commit` or an ancestor of it."""
    if culprit in BRANCH:
        return commit >= culprit if commit in BRANCH else commit >= 46
    return commit >= culprit and not (commit in BRANCH and culprit > 35)


def make_repository(folder, files_of):
    """66 commits; files_of(commit) gives the text of each file. Returns their ids."""
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
        for path, text in files_of(commit).items():
            stream.append(f"M 100755 inline {path}\n" + data(text))
    subprocess.run(["git", "init", "-q", folder], check=True)
    subprocess.run(["git", "fast-import", "--quiet"], input="".join(stream), text=True, check=True, cwd=folder)
    subprocess.run(["git", "checkout", "-q", "main"], check=True, cwd=folder)
    lines = subprocess.run(["git", "log", "--format=%H %s", "main"], check=True, cwd=folder, capture_output=True,
                           text=True).stdout.splitlines()
    ids = {int(line.split()[2]): line.split()[0] for line in lines}
    assert len(ids) == COUNT, len(ids)
    return ids


# The trainer's own sources.

# What is lost, in which source, at which commit, and the claim that sees it.
SOURCE_REGRESSIONS = (
    ("lost_bias_correction", "optimizers.cc", 27, "bisect_adamw.yaml", "control_unhealthy ('small_updates' in control)"),
    ("warmup_off_by_one", "schedules.cc", 42, "bisect_adamw.yaml", "control_unhealthy ('moves_at_once' in control)"),
    ("clips_nothing", "clipping.cc", 58, "bisect_clip.yaml", "remedy_ineffective ('blows_up' in clip)"),
)

BUILD = r'''#!/usr/bin/env python3
import json, os, subprocess, sys
sys.path.insert(0, os.environ["RECIPES"])
from bisect_trainer_test import compiled_text
with open(os.environ["OBJECTS"]) as file:
    known = json.load(file)
objects = []
for source in ("clipping.cc", "optimizers.cc", "schedules.cc"):
    digest = compiled_text(source)
    if digest not in known["objects"]:
        subprocess.run(["g++", "-std=c++20", "-Wfatal-errors", "-c", source, "-o", source + ".o"], check=True)
        known["objects"][digest] = [source + ".o"]
    objects += known["objects"][digest]
subprocess.run(["g++", "revision.cc", *objects, *known["rest"], "-o", "trainer"], check=True)
'''


def compiled_text(path):
    """A digest of what a compiler sees of a source: its text without comments."""
    plain = subprocess.run(["g++", "-fpreprocessed", "-dD", "-E", "-P", path], check=True, capture_output=True).stdout
    return hashlib.sha256(plain).hexdigest()


def read_link_inputs(listing):
    """The words to link a trainer with, and the archive of each regression; all paths absolute."""
    words, regressions = [], {}
    with open(listing, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("regression:"):
                name, _, path = line[len("regression:"):].partition("=")
                regressions[name] = os.path.abspath(path)
            else:
                words.append(line if line.startswith("-") else os.path.abspath(line))
    return words, regressions


def commented(text, commit):
    return f"// Commit {commit}.\n{text}\n/* as of commit {commit} */\n"


def bisect_sources(trainwreck, listing, scenarios, regression):
    name, source, culprit, scenario, named = regression
    words, archives = read_link_inputs(listing)
    here = os.path.dirname(os.path.abspath(listing))
    sound = {path: os.path.join(os.path.dirname(here), "optimizers", path) for path in ("clipping.cc", "optimizers.cc", "schedules.cc")}
    lost = os.path.join(here, name, source)
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    objects = {compiled_text(path): [] for path in sound.values()}  # they are among the rest
    objects[compiled_text(lost)] = ["-Wl,--whole-archive", archives[name], "-Wl,--no-whole-archive"]
    assert len(objects) == len(sound) + 1
    with open(folder + ".objects", "w", encoding="utf-8") as file:
        json.dump({"objects": objects, "rest": words}, file)
    texts = {}
    for path in [*sound.values(), lost]:
        with open(path, encoding="utf-8") as file:
            texts[path] = file.read()

    def files_of(commit):
        files = {path: texts[sound[path]] for path in sound}
        if descends(commit, culprit):
            files[source] = texts[lost]
        # Each commit touches the comments of some source; those that are no comments, the program as well.
        touched = sorted(sound)[commit % len(sound)]
        files[touched] = commented(files[touched], commit)
        if commit in BROKEN:
            files[source] = '#error "does not compile"\n' + files[source]
        version = commit - 1 if commit in COMMENTS else commit
        while version in COMMENTS:
            version -= 1
        files["revision.cc"] = f'// Commit {commit}.\nextern const char revision[] = "revision {version}";\n'
        files["build.py"] = BUILD
        files[".gitignore"] = "/trainer\n"
        return files

    ids = make_repository(folder, files_of)
    return check(name, trainwreck, folder, ids, culprit, named,
                 [os.path.join(scenarios, scenario), "--target", "trainer", "--build", "python3 build.py"],
                 {"OBJECTS": folder + ".objects", "RECIPES": os.path.dirname(os.path.abspath(__file__))})


# A launcher around the trainer.

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

# What is lost, at which commit, and the claim that sees it.
LAUNCHER_REGRESSIONS = (
    ("the clip", 32, 'recipe["optimizer.clip_norm"] = 0.0', "remedy_ineffective ('blows_up' in clip)"),
    ("the scale of the learning rate", 43, 'recipe["optimizer.lr"] *= 0.01', "control_unhealthy ('learns' in control)"),
)


def stack(commit, culprit, line):
    text = f"# commit {commit}\ndef change(recipe):\n    pass\n"
    if commit not in COMMENTS:
        text += f"version = {commit}\n"
    if descends(commit, culprit):
        text = text.replace("    pass\n", f"    {line}\n")
    return text + ("broken =\n" if commit in BROKEN else "")


def bisect_launcher(trainwreck, trainer, scenarios, regression):
    what, culprit, line, named = regression
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    ids = make_repository(folder, lambda commit: {"train.py": TRAIN, "stack.py": stack(commit, culprit, line)})
    return check(what, trainwreck, folder, ids, culprit, named,
                 [os.path.join(scenarios, "bisect_clip.yaml"), "--target", "train.py"], {"TRAINER": trainer})


def check(what, trainwreck, folder, ids, culprit, named, arguments, environment):
    done = subprocess.run([trainwreck, "bisect", *arguments, "--good", ids[0], "--bad", ids[COUNT - 1]], cwd=folder,
                          capture_output=True, text=True, check=False,
                          env={**os.environ, **environment, "TRAINWRECK_CACHE": folder + ".cache"})
    blamed = done.stdout.partition("\nculprit\n")[2].partition("confidence")[0].split()
    right = done.returncode == 0 and blamed and ids[culprit].startswith(blamed[0]) and named in done.stdout
    cost = [line for line in done.stdout.splitlines() if line.startswith("cost")]
    print(f"{what}: {'found' if right else 'NOT FOUND'}", *cost, flush=True)
    if not right:
        print(done.stdout, done.stderr)
        subprocess.run("cat .trainwreck/bisect/*/last-run.log .trainwreck/bisect/*/builds/*/log", shell=True, cwd=folder,
                       check=False)
    shutil.rmtree(folder)
    return right


def main():
    trainwreck, scenarios, changed = map(os.path.abspath, sys.argv[1:])
    if os.path.basename(changed) == "link_inputs.txt":
        found = [bisect_sources(trainwreck, changed, scenarios, regression) for regression in SOURCE_REGRESSIONS]
    else:
        found = [bisect_launcher(trainwreck, changed, scenarios, regression) for regression in LAUNCHER_REGRESSIONS]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
