"""The collectives of a rank, in order, and how long it waits for the other ranks.

They are seen where torch hands them to a process group, whoever calls: functions of
torch.distributed, functional collectives, FSDP, and DDP's own reducer.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import glob
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

import torch
import torch.distributed as dist

from trainwreck import compat, rank_faults, tensors

if TYPE_CHECKING:
    from trainwreck.hooks import Hooks

# As the reference trainer calls them, else as torch.distributed does. Point-to-point calls differ
# between ranks by their nature.
NAMES = {
    "allreduce_": "all_reduce",
    "allreduce_coalesced_": "all_reduce_coalesced",
    "broadcast_": "broadcast",
    "barrier": "barrier",
    "reduce_": "reduce",
    "allgather_": "all_gather",
    "_allgather_base_": "all_gather_into_tensor",
    "allgather_into_tensor_coalesced_": "all_gather_into_tensor_coalesced",
    "reduce_scatter_": "reduce_scatter",
    "_reduce_scatter_base_": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced_": "reduce_scatter_tensor_coalesced",
    "alltoall_": "all_to_all",
    "alltoall_base_": "all_to_all_single",
    "gather_": "gather",
    "scatter_": "scatter",
}
SHAPELESS = ("barrier", "all_to_all", "all_to_all_single")  # or each rank has shapes of its own
GLOO_THREAD = "pt_gloo_runloop"  # of PyTorch's process group, as the kernel knows it
MOST_SECONDS_OF_REST = 1.0
MOST_CALLS = 100_000  # that are written down: 10 MB, the same ones on all ranks


def is_there() -> bool:
    """Whether this process has a process group."""
    return dist.is_available() and dist.is_initialized()


class Collectives:
    """Writes each collective of all ranks before it begins, so that one that hangs is known."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._is_timed = hooks.plan.wants("comm_s")
        self._calls = 0
        self._seconds = 0.0
        self._is_known = True  # how long the rank waits: not where a device waits in its place
        self._open = 0  # begun within a backward pass, and not waited for by Python
        self._last = 0.0  # when the last one was handed over

    def install(self) -> None:
        """Begins with the process group: a program without one has nothing to be followed."""
        if not dist.is_available():
            return
        module: Any = dist.distributed_c10d
        begin = module.init_process_group

        @functools.wraps(begin)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = begin(*args, **kwargs)
            _rest_at_exit()
            self._hooks.guard("collectives", self._follow)
            return result

        dist.init_process_group = module.init_process_group = call

    @functools.cache  # noqa: B019 - once in a process
    def _follow(self) -> None:
        if dist.get_world_size() == 1 and not self._is_timed:
            return
        acting = rank_faults.CollectiveFaults(self._hooks.faults)
        for name, said in NAMES.items():
            compat.on_op("c10d", name, functools.partial(self._around, acting, name, said))
        if self._is_timed:
            compat.on_op("_c10d_functional", "wait_tensor", self._around_wait)
            work: Any = torch._C._distributed_c10d.Work
            work.wait = self._wrap_wait(work.wait)

    def _around(
        self,
        acting: rank_faults.CollectiveFaults,
        name: str,
        said: str,
        proceed: Callable[..., Any],
        arguments: dict[str, Any],
    ) -> Any:
        def call(**changed: Any) -> Any:
            begin = time.monotonic()
            self._hooks.guard("collectives", self._record, said, {**arguments, **changed})
            try:
                return proceed(**changed)
            finally:
                self._last = time.monotonic()
                self._seconds += self._last - begin
                self._open += self._hooks.is_in_backward()

        return acting.around(name, said, call, arguments)

    def _record(self, said: str, arguments: dict[str, Any]) -> None:
        # A list of lists is there on one rank alone, as that of a gather.
        all_given = [value for value in arguments.values() if not _is_nested(value)]
        given = list(tensors.all_in(all_given))
        self._is_known = self._is_known and all(tensor.device.type == "cpu" for tensor in given)
        if self._calls >= MOST_CALLS or not compat.is_of_all_ranks(arguments):
            return
        has_shape = said not in SHAPELESS and bool(given)
        self._hooks.trace.write(
            "collective",
            step=self._hooks.step,
            call=self._calls,
            op=said,
            shape=",".join(map(_shape, given)) if has_shape else "[]",
            dtype=str(given[0].dtype).replace("torch.", "") if has_shape else "",
        )
        self._calls += 1

    def _around_wait(self, proceed: Callable[[], Any], _arguments: dict[str, Any]) -> Any:
        begin = time.monotonic()
        try:
            return proceed()
        finally:
            self._waited(begin)

    def _wrap_wait(self, wait: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(wait)
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._around_wait(lambda: wait(*args, **kwargs), {})

        return call

    def _waited(self, begin: float) -> None:
        self._seconds += time.monotonic() - begin
        self._open = max(0, self._open - 1)

    def after_backward(self) -> None:
        """DDP's reducer waits at the end of the pass, with all gradients computed."""
        if self._open:
            self._seconds += time.monotonic() - self._last
        self._open = 0

    def finish_step(self) -> None:
        """Records what the step has shown."""
        if self._is_timed and self._is_known and is_there():
            self._hooks.put(comm_s=self._seconds)
        self._seconds = 0.0


@functools.cache
def _rest_at_exit() -> None:
    """A thread of Gloo may hold the tensors of a finished collective until Python ends. If it drops
    them then, it asks for a lock that Python gives to nobody any more, and the rank aborts, with
    hooks and without (pytorch/pytorch issue 190489). So the exit lets these threads come to rest.
    """
    atexit.register(let_gloo_rest)


def let_gloo_rest() -> None:
    """Waits until the threads of Gloo sleep, for a second at most, without Python's lock."""
    end = time.monotonic() + MOST_SECONDS_OF_REST
    before: list[int] | None = None
    while time.monotonic() < end:
        sleeps = list(_sleeps_of_gloo())
        if sleeps == before and -1 not in sleeps:
            return
        before = sleeps
        time.sleep(0.001)


def _sleeps_of_gloo() -> Iterator[int]:
    """How often each of its threads went to sleep; -1: it is awake."""
    for path in sorted(glob.glob("/proc/self/task/*/status")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
            told = {key: value.strip() for key, _, value in (line.partition(":") for line in file)}
            if told.get("Name") == GLOO_THREAD:
                is_asleep = told.get("State", "").startswith("S")
                yield int(told.get("voluntary_ctxt_switches", 0)) if is_asleep else -1


def _is_nested(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(one, list) for one in value)


def _shape(tensor: torch.Tensor) -> str:
    return "[" + ",".join(map(str, tensor.shape)) + "]"
