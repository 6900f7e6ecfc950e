#!/usr/bin/env python3
"""Whole-program figures of docs/measured/benchmarks.md, all in one go so that their ratios hold on a noisy machine.

  tools/benchmark.py --bin "$(bazel info bazel-bin)" [--python PYTHON_WITH_TORCH] [--suite]

Prints: short runs a minute (fork, exec; 1 and 2 cores), the cost of a start (a run of 1 step against one of 41),
`import torch` where that Python has it, the gpt's step against its twin in PyTorch eager (alternating), memory of
harness and run, and with --suite the wall time of the suite.
"""
import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SCENARIO = """apiVersion: trainwreck/v1
kind: Scenario
name: bench/mlp
title: Short runs, for timing
recipe: {{model: {{kind: mlp, layers: 2, width: 64}}, data: {{kind: features, batch_size: 16}}, steps: {steps}}}
seeds: {seeds}
inject: {{hot: {{fault: recipe.high_lr, with: {{factor: 1.5}}}}}}
symptoms: {{hotter: "max(lr[:1]) > 1.2 * control.max(lr[:1])"}}
no_remedy: only timed
"""


def timed(command, **options):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode not in (0, 5):
        sys.exit(f"{command}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return wall, cpu, done.stdout


def short_runs(options, steps, seeds, isolate, cores):
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(root + "/bench")
        with open(root + "/bench/mlp.yaml", "w", encoding="utf-8") as file:
            file.write(SCENARIO.format(steps=steps, seeds=seeds))
        return timed([options.bin + "/harness/cli/trainwreck", "run", root + "/bench/mlp.yaml", "--scenarios-root", root,
                      "--target", options.bin + "/trainer/trainwreck-trainer", "--isolate", isolate, "-j", str(cores),
                      "--output", root + "/out", "--keep", "none", "--full"])[:2]


GRADIENT_SIGNALS = [f"grad_{name}{{*}}" for name in ("norm", "mean", "std", "max", "nonfinite", "zero_share")]
GPTS = {"gpt 0.1 M": {"model.layers": 2, "model.width": 64}, "gpt 0.8 M": {"model.layers": 4, "model.width": 128}}
TELEMETRY = {
    "nothing asked": [],
    "all gradient statistics, over all tensors": [signal.split("{")[0] for signal in GRADIENT_SIGNALS],
    "all gradient statistics of each tensor, in the trace": GRADIENT_SIGNALS,
    "act_norm of each module": ["act_norm{*}"],
    "param_digest": ["param_digest"],
}


def telemetry_ratios(options, rounds):
    """Prints what recording costs: the fastest step of each of `rounds` runs, interleaved, as pairs of ratios."""
    for size, model in GPTS.items():
        telemetry_ratios_of(options, rounds, size, model)


def telemetry_ratios_of(options, rounds, size, model):
    fastest = {name: [] for name in TELEMETRY}
    for _ in range(rounds):
        for name, record in TELEMETRY.items():
            fastest[name].append(trainer_step_ms(options, record, min, model))
    plain = fastest["nothing asked"]
    for name, times in fastest.items():
        ratios = sorted(asked / base for asked, base in zip(times, plain))
        print(f"telemetry, {size}, {name}: {min(times):.3f} ms, ratio {min(times) / min(plain):.4f} of the fastest steps; of "
              f"{rounds} pairs {ratios[0]:.3f} / {statistics.median(ratios):.3f} / {ratios[-1]:.3f}")


def trainer_step_ms(options, record=(), pick=statistics.median, model=GPTS["gpt 0.1 M"]):
    """A step of the reference gpt on one thread, trace included: the median, or what `pick` takes."""
    return 1e3 * pick(step_seconds(train(options, model, record)))


def train(options, changes, record=(), ranks=1):
    """The trace of rank 0 of a run of the reference gpt."""
    described = json.loads(subprocess.run([options.bin + "/trainer/trainwreck-trainer", "--describe"],
                                          capture_output=True, text=True, check=True).stdout)
    recipe = {key["name"]: key["default"] for key in described["recipe"]}
    recipe.update({"model.kind": "gpt", "data.kind": "markov", "data.seq_len": 64,
                   "data.vocab": 64, "data.batch_size": 8, "optimizer.kind": "adamw", "optimizer.lr": 0.003,
                   "optimizer.clip_norm": 1.0, "steps": 110, "eval.at_epoch_end": False, "parallel.ranks": ranks, **changes})
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/plan.json", "w", encoding="utf-8") as file:
            json.dump({"protocol": 1, "run": "bench", "seed": 0, "recipe": recipe, "record": list(record),
                       "checkpoint_dir": folder + "/checkpoints", "rendezvous": folder + "/meet"}, file)
        environment = dict(os.environ, TRAINWRECK_PLAN=folder + "/plan.json", TRAINWRECK_TRACE=folder, WORLD_SIZE=str(ranks))
        others = [subprocess.Popen([options.bin + "/trainer/trainwreck-trainer"], env=dict(environment, RANK=str(rank)))
                  for rank in range(1, ranks)]
        timed([options.bin + "/trainer/trainwreck-trainer"], env=dict(environment, RANK="0"))
        if any(other.wait() != 0 for other in others):
            raise RuntimeError("a rank failed")
        with open(folder + "/rank0.jsonl", encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def step_seconds(trace):
    times = [record["time"] for record in trace if record["t"] == "step"]
    return [b - a for a, b in zip(times[9:], times[10:])]


# Ways to find ranks that differ; the first one is compared with.
CHECKS = {
    "no check": {},
    "compared after every step": {"parallel.check_every": 1},
    "compared every 10 steps": {"parallel.check_every": 10},
    "compared every 10 steps, digests of each kept": {"parallel.check_every": 10, "parallel.keep_digests": True},
    "each collective compared first": {"parallel.check_collectives": True},
}


def check_ratios(options, rounds):
    """Prints what finding ranks that differ costs two ranks: bytes a step, and mean steps of interleaved runs as pairs of ratios."""
    for size, model in {"mlp": {"model.kind": "mlp", "data.kind": "features"}, **GPTS}.items():
        means = {name: [] for name in CHECKS}
        sent = {}
        for _ in range(rounds):
            for name, changes in CHECKS.items():
                trace = train(options, {**model, **changes}, ranks=2)
                means[name].append(statistics.mean(step_seconds(trace)))
                sent[name] = sum(bytes_of(record) for record in trace if record["t"] == "collective") / 110
        for name, times in means.items():
            ratios = sorted(checked / base for checked, base in zip(times, means["no check"]))
            print(f"checks, {size}, {name}: {sent[name] - sent['no check']:.0f} more bytes a step of {sent['no check']:.0f}, "
                  f"{1e3 * statistics.median(times):.3f} ms, ratio of {rounds} pairs {ratios[rounds // 4]:.3f} / "
                  f"{statistics.median(ratios):.3f} / {ratios[-1 - rounds // 4]:.3f} (quartiles)", flush=True)


def bytes_of(collective):
    sizes = {"int64": 8, "float64": 8, "float32": 4, "int32": 4, "bfloat16": 2, "float16": 2, "uint8": 1}
    count = 1
    for size in re.findall(r"[0-9]+", collective.get("shape", "")):
        count *= int(size)
    return count * sizes.get(collective.get("dtype", ""), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--python", default="", help="a Python that can import torch")
    parser.add_argument("--suite", action="store_true")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--telemetry", type=int, default=0, metavar="ROUNDS", help="only: what recording costs")
    parser.add_argument("--checks", type=int, default=0, metavar="ROUNDS", help="only: what finding ranks that differ costs")
    options = parser.parse_args()
    if options.checks:
        check_ratios(options, options.checks)
        return
    if options.telemetry:
        telemetry_ratios(options, options.telemetry)
        return
    for isolate in ("fork", "exec"):
        seeds = options.seeds if isolate == "fork" else max(10, options.seeds // 10)
        for cores in (1, 2):
            long_wall, long_cpu = short_runs(options, 41, seeds, isolate, cores)
            short_wall, _ = short_runs(options, 1, seeds, isolate, cores)
            runs = 2 * seeds
            print(f"{isolate}, {cores} core(s): {60 * runs / long_wall:.0f} runs of 41 steps a minute, "
                  f"{1e3 * long_wall * cores / runs:.2f} ms a run and core ({1e3 * long_cpu / runs:.2f} ms cpu); "
                  f"start alone (1 step) {1e3 * short_wall * cores / runs:.2f} ms", flush=True)
    if options.python:
        imports = [timed([options.python, "-c", "import torch"])[0] for _ in range(3)]
        print(f"python -c 'import torch': {1e3 * statistics.median(imports):.0f} ms")
        pairs = []
        for _ in range(5):
            twin = os.path.join(os.path.dirname(os.path.abspath(__file__)), "eager_step.py")
            eager = float(re.search(r"([0-9.]+) ms", timed([options.python, twin])[2])[1])
            pairs.append((trainer_step_ms(options), eager))
        ratios = sorted(ours / eager for ours, eager in pairs)
        print(f"gpt step: reference loop {statistics.median(p[0] for p in pairs):.2f} ms, PyTorch eager "
              f"{statistics.median(p[1] for p in pairs):.2f} ms; ratio {ratios[0]:.2f} / {ratios[2]:.2f} / {ratios[4]:.2f} "
              "(minimum / median / maximum of 5 pairs)")
    peak = "/usr/bin/time"
    if os.path.exists(peak):
        done = subprocess.run([peak, "-f", "%M", options.bin + "/harness/cli/trainwreck", "list", "--target",
                               options.bin + "/trainer/trainwreck-trainer"], capture_output=True, text=True, check=False)
        print(f"memory of the harness: {int(done.stderr.split()[-1]) / 1024:.0f} MiB")
    if options.suite:
        wall, cpu, out = timed([options.bin + "/harness/cli/trainwreck", "run", "--target",
                                options.bin + "/trainer/trainwreck-trainer", "--output", tempfile.mkdtemp()])
        print(f"suite: {wall:.1f} s wall, {cpu:.1f} s cpu; {out.strip().splitlines()[-2].lstrip('# ')}")


if __name__ == "__main__":
    main()
