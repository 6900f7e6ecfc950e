#!/usr/bin/env python3
"""A stand-in for sbatch, squeue, sacct and scancel, named by how it is called, with its state in the folder $FAKE_SLURM.

Tasks are processes of this machine. What a test puts into the folder changes them:
  ends/K     states, one a line, in which the next submissions of task K end without being started
  holds      tasks wait in the queue for ever
  silent     the controller does not answer
  forgets    squeue knows nothing any more; sacct does
  refuses    sbatch prints this text and fails
  prolog     commands before each task
  late       seconds until the files of a task are seen after its end, as on a shared file system
  limit      seconds until a task is told to end, as at its time limit
Each call is a line of `calls`.
"""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import time

FOLDER = os.environ["FAKE_SLURM"]


def path(*names):
    return os.path.join(FOLDER, *names)


def tasks():
    for file in sorted(glob.glob(path("tasks", "*.json"))):
        with open(file, encoding="utf-8") as text:
            yield json.load(text)


def store(task):
    os.makedirs(path("tasks"), exist_ok=True)
    file = path("tasks", f"{task['job']:04}_{task['index']}.json")
    with open(file + ".new", "w", encoding="utf-8") as text:
        json.dump(task, text)
    os.replace(file + ".new", file)


def content(name):
    try:
        with open(path(name), encoding="utf-8") as text:
            return text.read()
    except FileNotFoundError:
        return ""


def forced_end(index):
    first, _, rest = content(f"ends/{index}").partition("\n")
    if first:
        with open(path("ends", str(index)), "w", encoding="utf-8") as text:
            text.write(rest)
    return first


def run(task, script, log):
    """Once the caller has gone on: the task, and how it ends."""
    if os.fork() != 0:
        return
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):  # else whoever reads what sbatch prints waits for the task
        os.dup2(nothing, descriptor)
    with open(log, "a", encoding="utf-8") as file:
        environment = {**os.environ, "SLURM_ARRAY_JOB_ID": str(task["job"]), "SLURM_ARRAY_TASK_ID": str(task["index"]),
                       "SLURM_CPUS_ON_NODE": "1"}
        subprocess.run(["sh", "-c", content("prolog")], check=False)
        with subprocess.Popen(["sh", script], env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file) as process:
            store({**task, "state": "RUNNING", "pid": process.pid})
            state = ""
            try:
                code = process.wait(timeout=float(content("limit") or 3600))
            except subprocess.TimeoutExpired:
                state = "TIMEOUT"
                process.terminate()
                code = process.wait()
    state = state or ("FAILED" if code else "COMPLETED")
    shard = os.path.join(os.path.dirname(log), str(task["index"]))
    if content("late"):
        os.rename(shard, shard + ".late")
    if not os.path.exists(path("cancelled")):
        store({**task, "state": state, "exit": -code if code < 0 else code << 8})
    if content("late"):
        time.sleep(float(content("late")))
        os.rename(shard + ".late", shard)
    os._exit(0)


def sbatch(options, words):
    if content("refuses"):
        sys.exit(content("refuses"))
    job = max([task["job"] for task in tasks()], default=16) + 1
    for part in options["array"].split(","):
        first, _, last = part.partition("-")
        for index in range(int(first), int(last or first) + 1):
            task = {"job": job, "index": index, "name": options["job-name"], "state": "PENDING", "exit": 0, "pid": 0}
            end = forced_end(index)
            store({**task, "state": end} if end else task)
            if not end and not os.path.exists(path("holds")):
                run(task, words[0], options["output"].replace("%a", str(index)))
    print(f"{job};fake")


def squeue(options, _):
    if os.path.exists(path("silent")):
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    if not os.path.exists(path("forgets")):
        for task in tasks():
            if task["name"] == options["name"]:
                print(f"{task['job']}|{task['index']}|{task['state']}|{task['exit']}|n1|None|")


def sacct(options, _):
    for task in tasks():
        if str(task["job"]) in options["jobs"].split(","):
            print(f"{task['job']}_{task['index']}|{task['state']}|{task['exit'] >> 8}:0|n1")


def scancel(options, _):
    open(path("cancelled"), "w", encoding="utf-8").close()
    for task in tasks():
        if task["name"] == options["name"] and task["state"] in ("PENDING", "RUNNING"):
            store({**task, "state": "CANCELLED"})
            if task["pid"]:
                os.kill(task["pid"], signal.SIGTERM)


def main():
    program = os.path.basename(sys.argv[0])
    with open(path("calls"), "a", encoding="utf-8") as calls:
        calls.write(" ".join([program] + sys.argv[1:]) + "\n")
    named = [re.fullmatch(r"--([a-z-]+)(?:=(.*))?", word) for word in sys.argv[1:]]
    options = {match[1]: match[2] for match in named if match}
    globals()[program](options, [word for word, match in zip(sys.argv[1:], named) if not match])


if __name__ == "__main__":
    main()
