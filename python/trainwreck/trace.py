"""The plan of a run and the trace that it leaves (docs/reference/protocol.md)."""

import fnmatch
import functools
import json
import math
import os
import random
import time
from collections.abc import Iterable
from typing import Any, Optional

BEGIN = time.monotonic()


class Fault:
    """A fault of the plan: what it is called, its parameters, and when it acts."""

    def __init__(self, entry: dict[str, Any], plan: dict[str, Any]) -> None:
        self.id: str = entry["id"]
        self.name: str = entry["fault"]
        self.with_: dict[str, Any] = entry.get("with", {})
        self.trigger: dict[str, Any] = entry.get("trigger", {})
        self._plan = plan

    def acts(self, step: int, rank: int) -> bool:
        """Whether its trigger holds at this step on this rank."""
        trigger, plan = self.trigger, self._plan
        first = trigger.get("from", 0)
        if step != trigger.get("at", step) or not first <= step <= trigger.get("to", step):
            return False
        if (step - first) % trigger.get("every", 1) or rank not in (trigger.get("ranks") or [rank]):
            return False
        if plan.get("phase", "train") != trigger.get("phase", plan.get("phase", "train")):
            return False
        if plan.get("attempt", 0) != trigger.get("attempt", plan.get("attempt", 0)):
            return False
        # All ranks and repetitions of a step draw the same number.
        draw = random.Random(f"{plan.get('seed', 0)}/{self.id}/{step}").random()
        return draw < float(trigger.get("probability", 1))


class Plan:
    """What the harness asks of this run."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.faults: list[Fault] = [Fault(entry, content) for entry in content.get("faults", [])]
        self._wanted: set[str] = set()  # of all that is mentioned, or of members
        self._totals: set[str] = set()
        self._globs: dict[str, list[str]] = {}
        self.record(content.get("record", []))

    @staticmethod
    def read() -> "Plan":
        """The plan that the environment names; an empty one without it."""
        path = os.environ.get("TRAINWRECK_PLAN")
        if not path:
            return Plan({})
        with open(path, encoding="utf-8") as file:
            return Plan(json.load(file))

    def record(self, signals: Iterable[str]) -> None:
        """Adds what formulas mention: signals, also of some modules (`act_norm{layers.*}`), and
        events that are written on demand."""
        for name in signals:
            signal, _, glob = name.partition("{")
            self._wanted.add(signal)
            if not glob:
                self._totals.add(signal)
            else:
                self._globs.setdefault(signal, []).append(glob.rstrip("}"))

    def wants(self, *signals: str) -> bool:
        """Whether a formula mentions one of these signals or events."""
        return not self._wanted.isdisjoint(signals)

    def wants_total(self, signal: str) -> bool:
        """Whether a formula mentions the signal of all together."""
        return signal in self._totals

    def wants_some(self, signal: str) -> bool:
        """Whether a formula mentions the signal of single members."""
        return signal in self._globs

    def wants_of(self, signal: str, name: str) -> bool:
        """Whether a formula mentions the signal of what has this name in the model."""
        return any(fnmatch.fnmatchcase(name, glob) for glob in self._globs.get(signal, []))


class Trace:
    """Appends records to rank<k>.jsonl. It is opened with the first one: only a process that trains
    leaves any."""

    def __init__(self, folder: Optional[str]) -> None:
        self._folder = folder
        self._file: Optional[int] = None
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._file = None  # a child may be another rank

    def write(self, kind: str, /, **fields: Any) -> None:
        """Writes one record."""
        fields = {key: _plain(value) for key, value in fields.items()}
        self._write_line(json.dumps({"t": kind, **fields}))

    def step(self, step: int, time: float, values: dict[str, float]) -> None:
        """Writes the record of a step: numbers alone, which takes a third of the time."""
        if math.isfinite(sum(values.values())):
            self._write_line(_form_of(*values) % (step, time, *values.values()))
        else:
            self.write("step", step=step, time=time, **values)

    def _write_line(self, line: str) -> None:
        """With one write, and at once: what a killed process has done is known."""
        if self._file is None:
            if self._folder is None:
                return
            path = os.path.join(self._folder, f"rank{rank()}.jsonl")
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.write(self._file, line.encode() + b"\n")

    def event(self, event: str, step: int, /, **fields: Any) -> None:
        self.write("event", event=event, step=step, time=seconds(), **fields)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # nan, inf, -inf
    return value


@functools.lru_cache(maxsize=64)
def _form_of(*names: str) -> str:
    """The record of a step that has values of these names."""
    fields = (f", {json.dumps(name)}: ".replace("%", "%%") + "%r" for name in names)
    return '{"t": "step", "step": %d, "time": %r' + "".join(fields) + "}"


def seconds() -> float:
    """Seconds since this process began to train."""
    return time.monotonic() - BEGIN


def rank() -> int:
    """The rank of this process: of torch's process group, else as its launcher says."""
    import torch.distributed

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "TRAINWRECK_RANK"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0
