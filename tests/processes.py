"""The processes of a test, wherever their launcher has started them, and whether Slurm is one here."""
import functools
import os
import subprocess


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


@functools.cache
def slurm_works(folder):
    """Whether srun starts tasks here, where they see `folder` and we see them."""
    look = ["srun", "--overcommit", "-n", "2", "sh", "-c", f"test -d {folder} && readlink /proc/self/ns/pid"]
    try:
        done = subprocess.run(look, capture_output=True, text=True, check=False, timeout=20)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and set(done.stdout.split()) == {os.readlink("/proc/self/ns/pid")}


NO_SLURM = "there is no srun that starts tasks here: it needs a Slurm, which ci/test.sh does not install"
