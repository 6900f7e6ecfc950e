"""Stands for torchrun, as far as a test needs it: ranks with their variables in sessions of their own, an agent that looks at them ten
times a second, ends all when one has failed, and reports the first failure last, as torchrun's elastic agent does.

Of failures that it finds at one look it calls the lowest rank's the first, as torchrun does. FAKE_TORCHRUN_LOOKS says how many seconds lie
between its looks.

Usage: fake_torchrun.py --nproc N PROGRAM ARGUMENTS...
"""
import os
import signal
import subprocess
import sys
import time

count = int(sys.argv[2])
ranks = []
for rank in range(count):
    variables = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    ranks.append(subprocess.Popen([sys.executable, *sys.argv[3:]], env={**os.environ, **variables}, start_new_session=True))

failures = []
while not failures and any(process.poll() is None for process in ranks):
    time.sleep(float(os.environ.get("FAKE_TORCHRUN_LOOKS", "0.1")))
    failures = [(rank, process) for rank, process in enumerate(ranks) if process.poll() not in (None, 0)]
if not failures:
    sys.exit(0)
for process in ranks:
    if process.poll() is None:
        print(f"W1101 10:00:00.000 1 torch/x.py:900] Sending process {process.pid} closing signal SIGTERM", file=sys.stderr)
        process.terminate()
for process in ranks:
    process.wait()
print(f"E1101 10:00:00.100 1 torch/x.py:874] failed (exitcode: {failures[0][1].returncode}) local_rank: {failures[0][0]} of binary: python3",
      file=sys.stderr)
print("Traceback (most recent call last):\n  File \"torchrun\", line 8, in <module>\nChildFailedError: \n" + "=" * 60, file=sys.stderr)
print("train.py FAILED\n" + "-" * 60 + "\nFailures:", file=sys.stderr)


def report(index, rank, process):
    code = process.returncode
    why = f"Signal {-code} ({signal.Signals(-code).name}) received by PID {process.pid}" if code < 0 else "To enable traceback see: errors.html"
    print(f"[{index}]:\n  time      : 2026-11-01_10:00:00\n  host      : here\n  rank      : {rank} (local_rank: {rank})\n"
          f"  exitcode  : {code} (pid: {process.pid})\n  error_file: <N/A>\n  traceback : {why}", file=sys.stderr)


for index, (rank, process) in enumerate(failures[1:], 1):
    report(index, rank, process)
print("-" * 60 + "\nRoot Cause (first observed failure):", file=sys.stderr)
report(0, *failures[0])
print("=" * 60, file=sys.stderr)
sys.exit(1)
