"""The processes of a test, wherever their launcher has started them, and what torchrun needs."""
import functools
import os
import signal
import subprocess
import unittest

STACKS = os.path.dirname(os.environ.get("TRAINWRECK_STACKS_PYTHON", "")) or os.path.expanduser("~/.cache/trainwreck/python-stacks/bin")
SEARCHED = STACKS + ":" + os.environ["PATH"]  # for torchrun and mpirun


def processes_with(marker):
    """The pids whose environment holds `marker`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if marker.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def words_of(pids):
    """The command line of each that has not ended meanwhile."""
    found = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                found.append(file.read().rstrip("\0").replace("\0", " "))
        except OSError:
            pass
    return found


@functools.cache
def assert_it_finds_what_it_leaves(test, leaky):
    """Runs a test of a class that leaves `sleep 600`: it says so, and ends it."""
    result = unittest.TestResult()
    leaky.run(result)
    (_, said), = result.failures
    test.assertIn("Lists differ: ['sleep 600'] != []", said)
    test.assertEqual(result.errors, [])
    test.assertEqual(processes_with(leaky.marker), [])


def torchrun_settings(python):
    """torchrun of torch 1.13 fails with Python 3.11, whose enumerations have other members, but where these are set: for no rank there is."""
    said = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=False).stdout
    return {"PET_REDIRECTS": "9:1", "PET_TEE": "9:1"} if said.startswith("1.") else {}


def of(pid, name):
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # it has ended
        return ""


def parent_of(pid):
    return int((of(pid, "stat").rpartition(")")[2].split() + ["0", "0"])[1])


def with_all_below(pids):
    found = set(pids)
    everybody = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    while more := {pid for pid in everybody if parent_of(pid) in found} - found:
        found |= more
    return found


def kill_all(pids):
    for pid in sorted(pids):  # who would start or report others goes first
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
