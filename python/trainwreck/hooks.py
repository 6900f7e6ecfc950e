"""Hooks of torch that follow a training run: its steps, losses, gradients and rates.

A step ends when `Optimizer.step` of the run's first optimizer returns. A hook that fails says so
once (`hook_failed`) and stays silent from then on; the training goes on.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

import torch
from torch.optim import Optimizer

from trainwreck import checkpoints, faults, generators, program, tensors
from trainwreck.collectives import Collectives
from trainwreck.families import STATISTICS, Family
from trainwreck.loaders import Loaders
from trainwreck.modules import Modules, plain_name
from trainwreck.optimizers import Optimizers, rate_of
from trainwreck.trace import Plan, Trace, seconds
from trainwreck.updates import Updates


class Clip(NamedTuple):
    """One call of `clip_grad_norm_` or `clip_grads_with_norm_`."""

    ids: set[int]  # of its parameters
    norm: float | None  # the 2-norm of their gradients before
    is_above: bool  # the norm that it clips by is above the one that it allows


class TotalNorm(NamedTuple):
    """One call of `get_total_norm`."""

    versions: dict[int, int]  # of the tensors, by their identity
    norm: Any  # 2-norm


class Hooks:
    """The run of this process, as its hooks see it. `step` is the step in progress, from 0."""

    def __init__(self, plan: Plan, trace: Trace, without: list[str]) -> None:
        self.plan = plan
        self.trace = trace
        self.step = 0
        self.has_stepped = False
        self.is_resumed = False
        self.is_paused = False  # while torch makes steps that are none of the program's
        self.optimizers = Optimizers()
        self._without = set(without)
        self._failed: set[str] = set()
        self._begin = seconds()
        self._backward_depth = 0
        self._losses: list[tuple[torch.Tensor, Any]] = []  # with what they were multiplied by
        self._loss_is_known = True
        self._rate_of_pass: float | None = None  # at the last backward pass
        # by a GradScaler: the product, the loss, the scale; since the last backward pass
        self._scaled: tuple[Any, Any, Any] = (None, None, None)
        self._clips: list[Clip] = []  # of the step in progress
        self._totals: list[TotalNorm] = []
        self._versions: dict[int, int] = {}  # of gradients, as the backward pass left them
        # What formulas mention, of what costs time.
        self._gradients = Family("grad", plan, STATISTICS)
        self._reads_single = bool(self._gradients) or plan.wants_some("grad_norm")
        self._read: set[int] = set()  # whose gradients have been read in the step in progress
        self._reads_gradients = bool(self._gradients) or plan.wants(
            "grad_norm", "applied_grad_norm", "nonfinite_grads"
        )
        self._reads_rates = plan.wants_some("lr")
        self._updates = Updates(self)
        self.modules = Modules(self)
        self.collectives = Collectives(self)
        self.loaders = Loaders(self)
        self._parameters: list[torch.Tensor] = []  # of the step in progress, once they are needed
        self._values: dict[str, Any] = {}
        self._skipped = 0
        self._is_in_step = False
        self._has_acted = False  # whether an optimizer within has made its step
        self._steps = int(os.environ.get("TRAINWRECK_ADAPTER_STEPS", -1))
        self._told_parameters = False
        # What reads a signal at the end of each step, where a formula mentions it.
        self._at_end: list[tuple[str, Callable[[], None]]] = []
        if self.modules.is_wanted:
            self._at_end.append(("modules", self.modules.finish_step))
        if plan.wants("comm_s"):
            self._at_end.append(("collectives", self.collectives.finish_step))
        if self.loaders.is_wanted:
            self._at_end.append(("loaders", self.loaders.finish_step))
        if plan.wants("generator_digest"):
            self._at_end.append(("generators", self._put_generators))
        if plan.wants("memory_bytes"):
            self._at_end.append(("memory", lambda: self.put(memory_bytes=memory_bytes())))
        self.model = ""
        self.names: dict[int, str] = {}  # of the model's parameters, by their identity
        self.after_update: list[Callable[[], None]] = []  # what a fault takes back
        self.faults = faults.Faults(self)

    def fail(self, hook: str, error: BaseException) -> None:
        """Says once that a hook failed, if it can."""
        if hook in self._failed:
            return
        self._failed.add(hook)
        with contextlib.suppress(Exception):
            self.trace.event("hook_failed", self.step, hook=hook, why=repr(error)[:300])

    def guard(self, hook: str, call: Callable[..., Any], *args: Any) -> Any:
        """The result of a call of ours, whose errors are not the program's."""
        if hook in self._failed:
            return None
        try:
            return call(*args)
        except faults.Injected:
            raise
        except Exception as error:
            self.fail(hook, error)
            return None

    def put(self, **values: Any) -> None:
        """Values of the step in progress. None: it is not known."""
        for name, value in values.items():
            if value is not None:
                self._values[name] = value

    # The backward pass.

    def on_backward(self, roots: Any, gradients: Any) -> None:
        roots = [roots] if isinstance(roots, torch.Tensor) else list(roots)
        if self._backward_depth > 1:  # recomputation within a backward pass
            if self.modules.births:
                self.modules.births.on_backward_within(roots)
            return
        if gradients is not None:
            given = [gradients] if isinstance(gradients, torch.Tensor) else list(gradients)
            if any(gradient is not None for gradient in given):
                self._loss_is_known = False  # it is no plain sum
        scaled, loss, scale = self._scaled
        for root in roots:
            if root.dim():
                self._loss_is_known = False
            if root is scaled:  # whose own value may be infinite
                self._losses.append((loss.detach(), None))
            else:
                self._losses.append((root.detach(), scale))
        self._scaled = (None, None, None)
        self._rate_of_pass = self.optimizers.rate()
        self.loaders.on_backward()
        if self.modules.births:
            self.modules.births.on_backward(
                roots, [loss for loss, _ in self._losses[-len(roots) :]]
            )

    def is_in_backward(self) -> bool:
        return self._backward_depth > 0

    def after_backward(self) -> None:
        if not self._reads_gradients and not self.faults:
            return
        parameters = self.optimizers.all_parameters()
        self.faults.after_backward(parameters)
        self._versions = {id(p): p.grad._version for p in parameters if p.grad is not None}

    def is_untouched(self, parameters: Iterable[torch.Tensor]) -> bool:
        """Whether their gradients are as the backward pass left them."""
        return all(
            p.grad is None or self._versions.get(id(p)) == p.grad._version for p in parameters
        )

    def on_scale(self, scaled: Any, loss: Any, scale: Any) -> None:
        self._scaled = (scaled, loss, scale)

    def on_scaled_step(self, scale: float) -> None:
        self.put(loss_scale=scale, overflow=0)

    def _put_loss(self) -> None:
        """The sum of the losses of the step's backward passes, as the program computed them."""
        if not self._losses or not self._loss_is_known:
            return
        losses = [
            float(loss) / (1.0 if scale is None else float(scale)) for loss, scale in self._losses
        ]
        self.put(loss=math.fsum(losses))

    # Gradients.

    def parameters(self) -> list[torch.Tensor]:
        if not self._parameters:
            self._parameters = self.optimizers.parameters()
        return self._parameters

    def forget_parameters(self) -> None:
        """Where the optimizer's have changed."""
        self._parameters = []

    def _with_gradients(self) -> list[torch.Tensor]:
        return [p for p in self.parameters() if p.grad is not None]

    def on_total_norm(self, of: list[torch.Tensor], norm: Any) -> None:
        """What a call of `get_total_norm` has found."""
        self._totals.append(TotalNorm({id(one): one._version for one in of}, norm))

    def on_clip(self, parameters: list[torch.Tensor], norm: Any, by: Any, max_norm: Any) -> None:
        """What a call of `clip_grad_norm_` has found: the 2-norm of these parameters' gradients, or
        None, and the norm that it clips by."""
        ids = {id(p) for p in parameters}
        # What was clipped before is no news.
        if all(ids.isdisjoint(clip.ids) for clip in self._clips):
            whole = float(tensors.full(by))
            self._clips.append(Clip(ids, whole if norm is by else norm, whole > float(max_norm)))

    def norm_to_clip(self, parameters: list[torch.Tensor]) -> float | None:
        """The norm of the gradients that the program is about to clip by a norm of its own: that
        may be of another kind, or of other gradients, too."""
        gradients = [p.grad for p in parameters if p.grad is not None]
        rest = {id(gradient): gradient._version for gradient in gradients}
        norms = []
        for total in self._totals:
            if total.versions.items() <= rest.items():
                norms.append(float(tensors.full(total.norm)))
                rest = {key: rest[key] for key in rest.keys() - total.versions.keys()}
        if not rest:
            return math.hypot(*norms)
        if not self._reads_gradients or any(map(tensors.is_sharded, parameters)):
            return None
        return tensors.norm(gradients)

    def read_gradients(self, parameters: Iterable[torch.Tensor]) -> None:
        """Reads single gradients as the backward pass left them, once in a step."""
        for p in parameters if self._reads_single else ():
            if p.grad is None or id(p) in self._read or tensors.is_sharded(p):
                continue
            if not self.is_untouched([p]):
                continue
            self._read.add(id(p))
            name = self.names.get(id(p), "")
            self._gradients.add(name, [p.grad])
            if self.plan.wants_of("grad_norm", name):
                self.put(**{f"grad_norm{{{name}}}": tensors.norm([p.grad])})

    def _norm_before_clipping(
        self, with_gradients: list[torch.Tensor], applied: float | None
    ) -> float | None:
        """None where somebody else has changed gradients: what they were is not known."""
        if not self._clips:  # then it is that of the gradients as they are applied
            return applied if self.is_untouched(with_gradients) else None
        clipped = set().union(*(clip.ids for clip in self._clips))
        rest = [p for p in with_gradients if id(p) not in clipped]
        norms = [clip.norm for clip in self._clips if clip.norm is not None]
        if len(norms) < len(self._clips):
            return None
        if not rest:
            return math.hypot(*norms)
        gradients = [p.grad for p in rest if p.grad is not None]
        if not self._reads_gradients or any(map(tensors.is_sharded, rest)):
            return None
        if not self.is_untouched(rest):
            return None
        return math.hypot(*norms, tensors.norm(gradients))

    def before_update(self) -> None:
        """Where all gradients are there, and nothing has been updated."""
        if not (self._clips or self._reads_gradients):
            return
        with_gradients = self._with_gradients()
        applied = self._read_applied(with_gradients) if self._reads_gradients else None
        self.put(grad_norm=self._norm_before_clipping(with_gradients, applied))
        if self._clips:
            self.put(clipped=int(any(clip.is_above for clip in self._clips)))

    def _read_applied(self, with_gradients: list[torch.Tensor]) -> float | None:
        """The norm of the gradients that the optimizer is given, and what else formulas mention."""
        if self._reads_single:
            self.read_gradients(with_gradients)
            self.put(**self._gradients.take(all(id(p) in self._read for p in with_gradients)))
        if any(map(tensors.is_sharded, with_gradients)):
            return None
        gradients = [p.grad for p in with_gradients if p.grad is not None]
        applied = tensors.norm(gradients)
        self.put(applied_grad_norm=applied)
        self.put(nonfinite_grads=0 if math.isfinite(applied) else tensors.nonfinite(gradients))
        return applied

    def find_model(self, module: torch.nn.Module) -> None:
        """Takes for the program's model the first module that is called and has all parameters of
        the optimizers; or else the first that is called for training and has some to train. What is
        called before there is an optimizer may be a part that tries its shapes."""
        if self.model or not self.optimizers:
            return
        is_for_training = module.training and torch.is_grad_enabled()
        parameters = list(module.parameters())
        has_all = set(map(id, self.optimizers.all_parameters())) <= set(map(id, parameters))
        if has_all or (is_for_training and any(p.requires_grad for p in parameters)):
            self.on_model(module)

    def on_model(self, module: torch.nn.Module) -> None:
        """What the program's model is, and what its parts are called."""
        self.model = type(module).__name__
        self.names = {id(p): plain_name(name) for name, p in module.named_parameters()}
        self.modules.follow(module)
        self.faults.on_model(module)

    # Steps.

    def begin_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        """The hook before each `Optimizer.step`; returns its arguments where they change."""
        if self.is_paused:
            return None
        if not self.optimizers.is_main(optimizer):
            if self._is_in_step:
                self.guard("rate", self._begin_within, optimizer)
            return None
        self._is_in_step = True
        self._has_acted = False
        self.guard("resume", checkpoints.find_step, self)
        if self.step == self._steps:
            raise SystemExit(0)  # the command has no option that says when it ends
        if self.faults:
            self.guard("faults", self.faults.begin_step)
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self._before()
            return None
        wrapped = self._wrap_closure(closure)
        if len(args) > 1:
            return (args[0], wrapped, *args[2:]), kwargs
        return args, {**kwargs, "closure": wrapped}

    def _begin_within(self, optimizer: Optimizer) -> None:
        """Where an optimizer begins that another one makes its step with: its rate is the one that
        acts."""
        known = len(self.optimizers.within)
        if self.optimizers.begin_within(optimizer) and not self._has_acted:
            self.put(lr=rate_of(optimizer))
        if len(self.optimizers.within) > known:
            self.forget_parameters()

    def _before(self) -> None:
        self.guard("rate", self._put_rates)
        self.guard("gradients", self.before_update)
        if self._updates.is_wanted:
            self.guard("update", self._updates.before, self.parameters())
        if self.faults:
            self.guard("faults", self.faults.before_update)

    def _put_rates(self) -> None:
        self.put(lr=self.optimizers.rate())
        for number, group in enumerate(self.optimizers.groups()) if self._reads_rates else ():
            name = str(group.get("name", number))
            if self.plan.wants_of("lr", name):
                self.put(**{f"lr{{{name}}}": float(group["lr"])})

    def _wrap_closure(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        @functools.wraps(closure)
        def call() -> Any:
            result = closure()
            self._before()
            return result

        return call

    def end_step(self, optimizer: Optimizer) -> None:
        """The hook after each `Optimizer.step`."""
        if self.is_paused:
            return
        if not self.optimizers.is_main(optimizer):
            self._has_acted = self._has_acted or optimizer in self.optimizers.within
        else:
            if not self._has_acted and "lr" not in self._values:  # those within did not act
                self.guard("rate", lambda: self.put(lr=rate_of(optimizer)))
            while self.after_update:
                self.after_update.pop()()
            if self._updates.is_wanted:
                self.guard("update", self._updates.after, self.parameters())
            self._is_in_step = False
            self.finish_step()

    def skip_step(self, **values: Any) -> None:
        """Ends a step whose update was left out."""
        self._skipped += 1
        # A schedule may have set the rate of the next step already.
        self.put(lr=self._rate_of_pass, **values)
        self.finish_step()

    def before_clearing(self) -> None:
        """Where gradients are cleared. If no update has used them, the program has left it out.

        Where several optimizers share a model, one clears what another one's pass has left: then
        nothing follows from it.
        """
        if self._is_in_step or self.is_paused or not self._losses:
            return
        optimizer = self.optimizers.only()
        if optimizer is None:
            return
        self.optimizers.is_main(optimizer)
        self.before_update()
        self.skip_step()

    def follow(self, optimizer: Optimizer) -> None:
        """Lets the steps of this optimizer be those of the run."""
        if not self.optimizers.is_main(optimizer):
            raise ValueError("steps of another optimizer have been counted already")

    def finish_step(self) -> None:
        """Writes what is known of the step in progress."""
        self.guard("loss", self._put_loss)
        for name, read in self._at_end:
            self.guard(name, read)
        if not self._told_parameters:
            self.guard("parameters", self._tell_parameters)
        now = seconds()
        self.put(skipped_updates=self._skipped, step_s=now - self._begin)
        self._begin = now
        for name in self._without & self._values.keys():
            del self._values[name]
        self.guard("trace", self.trace.step, self.step, now, self._values)
        self._values = {}
        self._losses = []
        self._loss_is_known = True
        self._clips = []
        self._totals = []
        if self._reads_single:
            self._read = set()
            self._gradients.take()
        self._parameters = []
        self.has_stepped = True
        self.step += 1

    def _put_generators(self) -> None:
        digests = generators.digests()
        if self.plan.wants_total("generator_digest"):
            self.put(generator_digest=generators.combine(digests.values()))
        for name, digest in digests.items():
            if self.plan.wants_of("generator_digest", name):
                self.put(**{f"generator_digest{{{name}}}": digest})

    def _tell_parameters(self) -> None:
        if self.optimizers.main is None:
            return
        self._told_parameters = True
        parameters = self.parameters()
        trainable = [p for p in parameters if p.requires_grad]
        self.put(
            optimized_count=sum(p.numel() for p in parameters),
            trainable_count=sum(p.numel() for p in trainable),
        )
        if os.environ.get("TRAINWRECK_ADAPTER_TELL"):
            program.tell(self, has_scaler="loss_scale" in self._values)


@functools.cache
def _statm(pid: int) -> int:
    """Stays open; a child of a fork has its own."""
    return os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)


def memory_bytes() -> int:
    """The memory of this process that is in use, with that of its tensors on devices of CUDA."""
    pages = int(os.pread(_statm(os.getpid()), 128, 0).split()[1])
    cuda: Any = torch.cuda
    devices = range(cuda.device_count()) if cuda.is_initialized() else ()
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(
        int(cuda.memory_allocated(one)) for one in devices
    )
