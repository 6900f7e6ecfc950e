#!/usr/bin/env python3
"""How the harness grows with the runs of a suite, the ranks of a run, and the shards of a job array. docs/measured/scale.md has the figures.

Usage: scale.py TRAINWRECK FAKE_TARGET runs|ranks|shards NUMBER [FOLDER]

  runs    a suite of NUMBER runs of a target that trains nothing: what the harness itself uses, and the size of what it writes
  ranks   a run of NUMBER ranks of that target, 30 steps of half a second, and the same run in which one rank waits for ever at step 15: what
          the harness itself uses, and whether it names the rank
  shards  `run --on slurm` with NUMBER shards of a case each, on simulated nodes: 2,000 tasks run at a time, and each look of the harness
          is one step of the simulation, in which every task ends: one of 100 with its node, one of 300 at its time limit, and one of
          1,000 is forgotten. Two shards lose their node each time.
"""
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
import time

SEEDS = 50
AT_A_TIME = 2000
PROGRAMS = ("sbatch", "squeue", "sacct", "scancel")
HOPELESS = (7, 8)  # shards


def scenario(seeds):
    return {"apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A slow descent", "seeds": seeds,
            "recipe": {"steps": 20, "optimizer.lr": 0.2}, "inject": {"slow": {"fault": "fake.slow_descent", "with": {"factor": 0.01}}},
            "symptoms": {"stuck": "at_end loss > 1"}, "no_remedy": "it is about the harness"}


def waiting_rank(ranks):
    late = ranks // 2
    return {"apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "One rank waits for ever", "seeds": 1,
            "budget": {"seconds": 300, "stall_seconds": 5},
            "recipe": {"parallel.ranks": ranks, "steps": 30, "fake.step_ms": 500, "fake.rank": late, "fake.at": 15},
            "inject": {"waits": {"fault": "fake.misbehave", "with": {"mode": "waits"}}},
            "symptoms": {"named": f"eventually stalled(waiting_rank=0, lagging_rank={late})"}, "no_remedy": "it is about the harness"}


def write_scenarios(folder, cases, content):
    text = json.dumps(content)
    for case in range(cases):
        group = f"{folder}/scenarios/g{case // 1000}"
        os.makedirs(group, exist_ok=True)
        with open(f"{group}/c{case % 1000:03}.yaml", "w", encoding="utf-8") as file:
            file.write(text)


class Measured:
    """Of one process: its own CPU time, not that of its children, and its peak memory."""

    def __init__(self, command, folder, environment):
        begin = time.monotonic()
        with open(folder + "/said", "w", encoding="utf-8") as said:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT)
        self.peak_mib = 0.0
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
                for line in file:
                    if line.startswith("VmHWM:"):
                        self.peak_mib = int(line.split()[1]) / 1024
            time.sleep(0.05)
        with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
            times = file.read().rpartition(")")[2].split()[11:15]
        self.own, self.children = ((int(times[i]) + int(times[i + 1])) / os.sysconf("SC_CLK_TCK") for i in (0, 2))
        self.status = process.wait()
        self.seconds = time.monotonic() - begin

    def __str__(self):
        return (f"exit status {self.status}, {self.seconds:.1f} s; own CPU {self.own:.2f} s, of children {self.children:.2f} s; "
                f"peak {self.peak_mib:.0f} MiB")


def size(path):
    return sum(os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(path) for name in names)


def measure_runs(trainwreck, folder, environment, number):
    cases = max(1, number // (2 * SEEDS))
    write_scenarios(folder, cases, scenario(SEEDS))
    run = Measured([trainwreck, "run", "--output", "out", "--history", "history.db", "--report", "junit=junit.xml"], folder, environment)
    print(f"{cases * 2 * SEEDS} runs of {cases} cases: {run}")
    for name in ("out/verdicts.json", "out/report.html", "junit.xml", "history.db"):
        print(f"  {name}: {os.path.getsize(folder + '/' + name) / 1e6:.2f} MB")
    print(f"  out: {size(folder + '/out') / 1e6:.1f} MB")
    statuses = [run.status]
    for words in (["show", "out"], ["merge", "out", "--output", "merged", "--history", "none"]):
        again = Measured([trainwreck, *words], folder, environment)
        print(f"  {words[0]}: {again}")
        statuses.append(again.status)
    return max(statuses)


def measure_ranks(trainwreck, folder, environment, number):
    write_scenarios(folder, 1, waiting_rank(number))
    run = Measured([trainwreck, "run", "--output", "out", "--history", "none"], folder, environment)
    cores = run.own / run.seconds
    print(f"2 runs of {number} ranks: {run}; {cores:.2f} of a core")
    if cores > 1:
        print("the harness took more than one core")
        return 1
    if run.status:
        with open(folder + "/said", encoding="utf-8") as said:
            print(said.read())
    return run.status


# The stand-in for Slurm. All its state is one file.

def simulate(program, words):
    state_file = os.environ["SCALE_SLURM"] + "/state"
    with open(state_file, "rb") as file:
        state = pickle.load(file)
    if program == "sbatch":
        array, = (word.partition("=")[2] for word in words if word.startswith("--array="))
        state["job"] += 1
        state["submissions"] += 1
        for part in array.split(","):
            first, _, last = part.partition("-")
            for index in range(int(first), int(last or first) + 1):
                state["waiting"].append(index)
                state["tasks"][index] = (state["job"], "PENDING", 0)
        state["log"], = (word.partition("=")[2] for word in words if word.startswith("--output="))
        print(state["job"])
    elif program == "squeue":
        step(state)
        for index, (job, what, code) in state["tasks"].items():
            if what != "FORGOTTEN":
                print(f"{job}|{index}|{what}|{code}|n{index % 100}|None|")
    with open(state_file + ".new", "wb") as file:
        pickle.dump(state, file)
    os.replace(state_file + ".new", state_file)


def step(state):
    rng = random.Random(state["steps"])
    state["steps"] += 1
    for index in state["running"]:
        job = state["tasks"][index][0]
        chance = rng.random()
        if index in HOPELESS or chance < 0.01:
            state["tasks"][index] = (job, "NODE_FAIL", 0)
        elif chance < 0.01 + 1 / 300:
            state["tasks"][index] = (job, "TIMEOUT", 0)
        elif chance < 0.011 + 1 / 300:
            state["tasks"][index] = (job, "FORGOTTEN", 0)
        else:
            write_verdicts(state, index, job)
            state["tasks"][index] = (job, "COMPLETED", 0)
    state["running"], state["waiting"] = state["waiting"][:AT_A_TIME], state["waiting"][AT_A_TIME:]
    for index in state["running"]:
        state["tasks"][index] = (state["tasks"][index][0], "RUNNING", 0)


def write_verdicts(state, index, job):
    folder = os.path.dirname(state["log"]) + f"/{index}/{job}.0"
    os.makedirs(folder)
    with open(folder + "/verdicts.json", "w", encoding="utf-8") as file:
        file.write(state["verdicts"].replace("SCALE_CASE", state["cases"][index - 1]).replace("SCALE_SHARD", str(index)))


def measure_shards(trainwreck, folder, environment, number):
    write_scenarios(folder, number, scenario(1))
    shard = f"{min(11, number)}/{number}"  # the first ten have the names of all cases, too
    one = Measured([trainwreck, "run", "--shard", shard, "--history", "none", "--output", "one"], folder, environment)
    print(f"one shard of {number}, which reads all scenarios to find its own: {one}")
    with open(folder + "/one/verdicts.json", encoding="utf-8") as file:
        verdicts = file.read()
    case = json.loads(verdicts)["verdicts"][0]["case"]
    for program in PROGRAMS:
        os.makedirs(folder + "/bin", exist_ok=True)
        shutil.copy(os.path.abspath(__file__), f"{folder}/bin/{program}")
        os.chmod(f"{folder}/bin/{program}", 0o755)
    cases = [f"g{case // 1000}/c{case % 1000:03}" for case in range(number)]
    state = {"job": 16, "steps": 0, "submissions": 0, "waiting": [], "running": [], "tasks": {}, "cases": sorted(cases),
             "verdicts": verdicts.replace(case, "SCALE_CASE").replace(shard, f"SCALE_SHARD/{number}")}
    with open(folder + "/state", "wb") as file:
        pickle.dump(state, file)
    environment = {**environment, "PATH": folder + "/bin:" + os.environ["PATH"], "SCALE_SLURM": folder}
    run = Measured([trainwreck, "run", "--on", "slurm", "--shards", str(number), "--output", "out", "--history", "history.db"], folder,
                   environment)
    with open(folder + "/state", "rb") as file:
        state = pickle.load(file)
    print(f"{number} shards: {run}")
    print(f"  {state['submissions']} submissions, {state['steps']} looks at the queue")
    with open(folder + "/said", encoding="utf-8") as said:
        lines = said.read().splitlines()
    lost = [line for line in lines if "has not come" in line]
    print(*lost, sep="\n")
    judged = number - len(lost)
    is_right = len(lost) >= len(HOPELESS) and any(line.startswith(f"# {judged} cases: {judged} pass") for line in lines)
    return 0 if run.status == 7 and is_right else 1


def main():
    if os.path.basename(sys.argv[0]) in PROGRAMS:
        return simulate(os.path.basename(sys.argv[0]), sys.argv[1:])
    trainwreck, target, what, number, *where = sys.argv[1:]
    folder = where[0] if where else tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    environment = {**os.environ, "TRAINWRECK_TARGET": os.path.abspath(target), "TRAINWRECK_CACHE": folder + "/.cache"}
    measure = {"runs": measure_runs, "ranks": measure_ranks, "shards": measure_shards}[what]
    status = measure(os.path.abspath(trainwreck), folder, environment, int(number))
    if not where:
        shutil.rmtree(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
