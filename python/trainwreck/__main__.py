"""The command `trainwreck`: this process becomes the program of the wheel."""

import os
import signal
import sys
from typing import NoReturn

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "trainwreck")


def undo_start_of_python() -> None:
    """Gives back what a Python changes at its start, and what the program would inherit."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    # In the locale C it sets this variable (PEP 538). The file has the environment as it was.
    os.environ.pop("LC_CTYPE", None)
    with open("/proc/self/environ", "rb") as file:
        for entry in file.read().split(b"\0"):
            if entry.startswith(b"LC_CTYPE="):
                os.environb[b"LC_CTYPE"] = entry.partition(b"=")[2]


def main() -> NoReturn:
    undo_start_of_python()
    try:
        os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
    except OSError as error:
        print(f"trainwreck: {PROGRAM}: {error.strerror}", file=sys.stderr)
        sys.exit(7)  # An error of the infrastructure: no run was judged.


if __name__ == "__main__":
    main()
