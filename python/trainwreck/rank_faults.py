"""Faults of what ranks do together: collectives, and the gradients of DDP."""

from __future__ import annotations

import fnmatch
import functools
import threading
import time
from typing import TYPE_CHECKING, Any, Callable

import torch
import torch.distributed as dist

from trainwreck import compat, tensors

if TYPE_CHECKING:
    from trainwreck.faults import Faults
    from trainwreck.trace import Fault

KINDS = ("collective.skip", "collective.delay", "collective.mismatch", "collective.corrupt_result")


def wrap(faults: Faults) -> None:
    """Wraps DDP's forward pass, where it decides whether to reduce gradients; and `all_reduce`,
    where this torch does not let the op below it be left out."""
    if faults.has("collective.skip_gradients"):
        _wrap_forward(faults)
    if any(map(faults.has, KINDS)) and not compat.has_works():
        _wrap_all_reduce(faults)


class CollectiveFaults:
    """Acts on collectives where torch hands them to a process group, whoever calls. It is made
    where the group is: by the thread that trains."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._is_wanted = compat.has_works() and any(map(faults.has, KINDS))
        self._thread = threading.get_ident()
        self._seen: dict[str, tuple[int, int]] = {}  # by fault: a step, and how many it had so far

    def around(
        self, name: str, said: str, call: Callable[..., Any], arguments: dict[str, Any]
    ) -> Any:
        """What an op of c10d returns, or what is to be in its place."""
        if not self._is_wanted or not self._faults.guard(self._counts, arguments):
            return call()

        def finished() -> Any:
            given = _result_in(arguments)
            work = compat.finished_work(list(tensors.all_in(given))).boxed()
            op = getattr(torch.ops.c10d, name).default
            return work if len(op._schema.returns) == 1 else (given, work)

        def wait(result: Any) -> None:
            compat.wait_for(result[-1] if isinstance(result, tuple) else result)

        return self.act(said, call, arguments, finished, wait)

    def act(
        self,
        said: str,
        call: Callable[..., Any],
        arguments: dict[str, Any],
        finished: Callable[[], Any],
        wait: Callable[[Any], None],
    ) -> Any:
        """What a collective returns. `finished` gives what it returns where it is done."""
        made = self._faults.guard(self._leave_out, said, finished)
        if made is not None:
            return made[0]
        self._faults.guard(self._delay, said)
        result = call(**(self._faults.guard(self._longer, said, arguments) or {}))
        made = self._faults.guard(self._wrong, said, arguments, finished, lambda: wait(result))
        return result if made is None else made[0]

    def _leave_out(self, said: str, finished: Callable[[], Any]) -> tuple[Any] | None:
        """What a collective returns that is left out; None: it is to be called."""
        for fault in self._due("collective.skip", said):
            made = (finished(),)
            self._faults.fired(fault, said, "left out")
            return made
        return None

    def _delay(self, said: str) -> None:
        for fault in self._due("collective.delay", said):
            begin = time.monotonic()
            time.sleep(float(fault.with_["seconds"]))
            self._faults.fired(fault, 0.0, time.monotonic() - begin, op=said)

    def _longer(self, said: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that are to have others in their place."""
        changed: dict[str, Any] = {}
        for fault in self._due("collective.mismatch", said) if said != "barrier" else ():
            changed = self._lengthen(fault, said, arguments)
        return changed

    def _wrong(
        self,
        said: str,
        arguments: dict[str, Any],
        finished: Callable[[], Any],
        wait: Callable[[], None],
    ) -> tuple[Any] | None:
        """What a collective returns whose result is changed; None: it stays."""
        result = next(tensors.all_in(_result_in(arguments)), None)
        if result is None or not result.is_floating_point() or said == "barrier":
            return None
        made = None
        for fault in self._due("collective.corrupt_result", said):
            if made is None:
                wait()
                made = (finished(),)  # of others a wait may write the result again
            self._corrupt(fault, said, result)
        return made

    def _counts(self, arguments: dict[str, Any]) -> bool:
        """Whether it is one of the training's, which all ranks make in the same order: another
        thread may save."""
        group = compat.group_of(arguments)
        is_own = threading.get_ident() == self._thread or compat.is_in_graph()
        return is_own and group is not None and group.size() > 1

    def _due(self, kind: str, said: str) -> list[Fault]:
        """Those that are due, in the step in progress, at this collective."""
        return [
            fault
            for fault in self._faults.due(kind)
            if fnmatch.fnmatchcase(said, fault.with_["op"])
            and self._count(fault) == int(fault.with_["call"])
        ]

    def _count(self, fault: Fault) -> int:
        """How many collectives of the step in progress came before that it may act on."""
        step, count = self._seen.get(fault.id, (-1, 0))
        count = count + 1 if step == self._faults.step else 0
        self._seen[fault.id] = (self._faults.step, count)
        return count

    def _lengthen(self, fault: Fault, said: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The same arguments with longer tensors."""
        times = int(fault.with_["times"])

        def lengthen(tensor: torch.Tensor) -> torch.Tensor:
            return torch.cat([tensor.detach().reshape(-1)] * times)

        changed = {}
        for name, value in arguments.items():
            if next(tensors.all_in(value), None) is not None:
                changed[name] = tensors.mapped(value, lengthen)
            elif name.endswith("_split_sizes"):
                changed[name] = [times * size for size in value]
        before = _elements([arguments[name] for name in changed])
        after = _elements(list(changed.values()))
        self._faults.fired(fault, before, after, what="elements", op=said)
        return changed

    def _corrupt(self, fault: Fault, said: str, result: torch.Tensor) -> None:
        result, first = result.data, (0,) * result.dim()
        before = float(result[first])
        result[first] = float(fault.with_["value"])
        self._faults.fired(fault, before, float(result[first]), op=said)


def _result_in(arguments: dict[str, Any]) -> Any:
    """Of all ops the first argument has the tensors of the result."""
    return arguments[next(iter(arguments))]


def _elements(value: Any) -> int:
    return sum(tensor.numel() for tensor in tensors.all_in(value))


def _wrap_all_reduce(faults: Faults) -> None:
    all_reduce: Any = dist.all_reduce
    acting = CollectiveFaults(faults)

    @functools.wraps(all_reduce)
    def call(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        def proceed(tensor: torch.Tensor = tensor) -> Any:
            return all_reduce(tensor, *args, **kwargs)

        def finished() -> Any:
            is_async = kwargs.get("async_op", args[2:3] == (True,))
            return compat.finished_work([tensor]) if is_async else None

        def wait(result: Any) -> None:
            if result is not None:  # a work that goes on
                result.wait()

        return acting.act("all_reduce", proceed, {"tensor": tensor}, finished, wait)

    dist.all_reduce = call


def _wrap_forward(faults: Faults) -> None:
    parallel: Any = torch.nn.parallel.DistributedDataParallel
    forward = parallel.forward

    @functools.wraps(forward)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not faults.guard(_skips_gradients, faults, self):
            return forward(self, *args, **kwargs)
        with self.no_sync():
            return forward(self, *args, **kwargs)

    parallel.forward = call


def _skips_gradients(faults: Faults, parallel: Any) -> bool:
    for fault in faults.due("collective.skip_gradients"):
        if parallel.require_backward_grad_sync and torch.is_grad_enabled():
            with parallel.no_sync():
                faults.fired(fault, True, parallel.require_backward_grad_sync)
            return True
    return False
