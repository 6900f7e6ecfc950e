"""Runs programs of programs.py whose faults fail by an error of their own, each case in a child:
importing torch takes longer than all of them. `broken_faults.py < CASES` says of each what its
ranks returned.
"""

from __future__ import annotations

import copy
import errno
import json
import os
import sys
import traceback
from types import SimpleNamespace
from typing import Any, Callable

import programs
import torch

from trainwreck import compat, data_faults, faults, generator_faults, install, trace


def fail(*_args: Any, **_kwargs: Any) -> Any:
    raise ValueError("no fault today")


def fail_in_torch(*_args: Any, **_kwargs: Any) -> Any:
    raise RuntimeError("no kernel today")


def break_telling() -> None:
    """A fault cannot say what it has done."""
    write: Any = trace.Trace.event

    def call(self: Any, event: str, *args: Any, **fields: Any) -> None:
        if event == "fired":
            raise OSError(errno.ENOSPC, "no fault today")
        write(self, event, *args, **fields)

    trace.Trace.event = call  # type: ignore[method-assign]


def break_copy(number: int) -> Callable[[], None]:
    """This deep copy of a batch fails."""

    def break_() -> None:
        calls: list[None] = []

        def call(batch: Any) -> Any:
            calls.append(None)
            return fail() if len(calls) == number else copy.deepcopy(batch)

        data_faults.copy = SimpleNamespace(deepcopy=call)  # type: ignore[attr-defined]

    return break_


def put(holder: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(holder, name, value)


BREAKS: dict[str, Callable[[], None]] = {
    "nothing": lambda: None,
    "deciding": put(trace.Fault, "acts", fail),
    "telling": break_telling,
    "first copy": break_copy(1),
    "second copy": break_copy(2),
    # What another torch may lack.
    "no fetcher": put(data_faults, "fetch", SimpleNamespace()),
    "no schedulers": put(compat, "scheduler_classes", fail),
    "no generators": put(generator_faults, "_wrap_setter", fail),
    "no ones": put(torch, "ones", fail_in_torch),
    "no works": put(compat, "finished_work", fail),
    "no waiting": put(compat, "wait_for", fail),
    "no group": put(compat, "group_of", fail),
    "no collective faults": put(faults.rank_faults, "wrap", fail),
}


def call(name: str, steps: str, *more: str) -> None:
    sys.argv[1:] = [name, steps, *more]
    programs.PROGRAMS[name](int(steps))


def run(case: dict[str, Any], rank: int) -> None:
    os.chdir(case["folder"])
    for stream, name in ((1, "said"), (2, "errors")):
        os.dup2(os.open(f"{name}{rank}", os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(case["ranks"]), MASTER_ADDR="127.0.0.1")
    os.environ.update(MASTER_PORT=str(case["port"]), TRAINWRECK_TRACE=".", TRAINWRECK_PLAN="plan")
    if case["before"]:
        call(*case["before"])
        os.truncate(f"said{rank}", 0)
    if case["breaks"] is not None:
        with open("plan", "w", encoding="utf-8") as file:
            json.dump({"faults": case["faults"]}, file)
        BREAKS[case["breaks"]]()
        install.install()
    call(*case["program"])


def begin(case: dict[str, Any], rank: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        run(case, rank)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)  # imports what torch needs for it
    for one in json.load(sys.stdin):
        children = [begin(one, rank) for rank in range(one["ranks"])]
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(ends), flush=True)
