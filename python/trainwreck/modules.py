"""What the modules of the model compute: their activations, the inputs of the model, and where the
first number that is not finite was born. Hooks of modules are set only where a formula asks.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from trainwreck import compat, tensors
from trainwreck.families import OF_ACTIVATIONS, Family

if TYPE_CHECKING:
    from trainwreck.hooks import Hooks

# Wrappers name what they hold so: torch.compile, FSDP, activation checkpointing.
_OF_WRAPPERS = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}


def plain_name(name: str) -> str:
    """A name within the model, as it is without wrappers (`module` is DDP's)."""
    parts = [part for part in name.split(".") if part not in _OF_WRAPPERS]
    return ".".join(parts[1:] if parts[:1] == ["module"] else parts)


def _is_wrapper(module: torch.nn.Module) -> bool:
    is_parallel = type(module).__name__ in ("DataParallel", "DistributedDataParallel")
    return is_parallel or any(child in _OF_WRAPPERS for child, _ in module.named_children())


def _held(module: torch.nn.Module) -> torch.nn.Module:
    """What a wrapper wraps."""
    while _is_wrapper(module):
        module = next(module.children())
    return module


def find_by_share(
    model: torch.nn.Module, pattern: str, share: float
) -> tuple[str, torch.nn.Module] | None:
    """Of the modules of this name with parameters of their own, in the model's order: the first
    with which they have more than this share of their elements, or the last."""
    counts = [
        (sum(p.numel() for p in module.parameters(recurse=False)), name, module)
        for name, module in model.named_modules()
        if fnmatch.fnmatchcase(name, pattern)
    ]
    rest = share * sum(count for count, *_ in counts)
    found = None
    for count, name, module in counts:
        if count > 0:
            found = name, module
            rest -= count
            if rest < 0:
                break
    return found


def _is_compiled(module: torch.nn.Module) -> bool:
    """Whether hooks within are not called: it was compiled as a whole."""
    in_place = getattr(module, "_compiled_call_impl", None) is not None
    return in_place or any(child == "_orig_mod" for child, _ in module.named_children())


class Modules:
    """The modules of the program's model, by their names, and what they compute in a step."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._names: dict[int, str] = {}
        self._leaves: set[int] = set()
        self._has_compiled = False
        self._open: list[int] = []  # those that are being called, from outside to inside
        self._counts = False  # whether the pass is one of the step's
        self._inputs: list[torch.Tensor] = []  # of the step, where they are asked for
        self._given: list[torch.Tensor] = []  # what the pass in progress was given
        self._activations = Family("act", hooks.plan, OF_ACTIVATIONS)
        self._reads_inputs = hooks.plan.wants("sample_digest")
        self.births = Births(hooks) if hooks.plan.wants("first_nonfinite") else None

    @property
    def is_wanted(self) -> bool:
        return bool(self._activations or self._reads_inputs or self.births)

    def install(self) -> None:
        if self.is_wanted:
            compat.on_modules(self._before, self._after)

    def follow(self, model: torch.nn.Module) -> None:
        """Names the modules of a model; itself it has the name of its class."""
        for raw, module in model.named_modules():
            held = raw.rpartition(".")[2] in _OF_WRAPPERS
            parent = model.get_submodule(raw.rpartition(".")[0])
            if (_is_wrapper(module) and not _is_compiled(module)) or (
                held and _is_compiled(parent)
            ):
                continue
            self._names[id(module)] = plain_name(raw) or type(_held(module)).__name__
            if not any(True for _ in module.children()):
                self._leaves.add(id(module))
        self._has_compiled = any(map(_is_compiled, model.modules()))
        if self.births:
            self.births.follow(model, "" if self._has_compiled else "loss")

    def _before(self, module: torch.nn.Module, given: Any) -> None:
        if compat.is_compiling():
            return
        if not self._names:
            self._hooks.guard("model", self._hooks.find_model, module)
        if id(module) in self._names:
            self._hooks.guard("modules", self._enter, module, given)

    def _after(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if compat.is_compiling() or id(module) not in self._names:
            return
        self._hooks.guard("modules", self._leave, module, (args, kwargs), output)

    def _enter(self, module: torch.nn.Module, given: Any) -> None:
        if id(module) in self._open:  # an exception has ended its call before
            del self._open[self._open.index(id(module)) :]
        inputs = list(tensors.all_in(given))
        if not self._open:
            # Recomputed parts run without gradients first: then their inputs have some.
            trains = torch.is_grad_enabled() or any(tensor.requires_grad for tensor in inputs)
            self._counts = module.training and trains and not self._hooks.is_in_backward()
            self._given = inputs
        elif self.births and self._counts:
            self.births.on_inputs(self._names[self._open[-1]], inputs, self._given)
        self._open.append(id(module))

    def _leave(self, module: torch.nn.Module, given: Any, output: Any) -> None:
        while self._open and self._open.pop() != id(module):
            pass
        name = self._names[id(module)]
        outputs = list(tensors.all_in(output))
        inputs = list(tensors.all_in(given))
        if self.births:
            self.births.claim(outputs, name, inputs)
        if not self._counts:
            return
        if self.births:
            self.births.on_output(name, outputs, self._given if self._open else inputs)
        if self._activations and not any(map(tensors.is_sharded, outputs)):
            self._activations.add(name, outputs, is_counted=id(module) in self._leaves)
        if self._reads_inputs and not self._open:
            self._inputs.extend(inputs)

    def finish_step(self) -> None:
        """Records what the step has shown."""
        if self._inputs:
            self._hooks.put(sample_digest=tensors.digest(self._inputs))
            self._inputs = []
        if self._activations:
            self._hooks.put(**self._activations.take(has_total=not self._has_compiled))


# Each is reported once: what was seen from a loss that is not finite, and from gradients alone.
_PARTS = ("forward", "backward")


@dataclass(frozen=True)
class Finding:
    """A tensor with numbers that are not finite, and where it was found."""

    stage: str
    module: str
    tensor: str
    kind: str
    count: int
    elements: int


def _look(stage: str, module: str, name: str, tensor: Any) -> Finding | None:
    """None: all is finite."""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
        return None
    tensor = tensors.local(tensor)
    bad = ~torch.isfinite(tensor.detach())
    count = int(bad.sum())
    if count == 0:
        return None
    kind = "nan" if bool(torch.isnan(tensor.detach()).any()) else "inf"
    return Finding(stage, module, name, kind, count, tensor.numel())


def _first(stage: str, module: str, name: str, all_: Iterable[Any]) -> Finding | None:
    return next(filter(None, (_look(stage, module, name, tensor) for tensor in all_)), None)


class Births:
    """Finds where the first number that is not finite was born (event `first_nonfinite`).

    Forward, it is the first output of a module. Backward, it is the first op whose results are not
    finite, though what it was given is: each node of the graph belongs to the innermost module that
    made it, and those that none made to the loss.
    """

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._parameters: list[tuple[str, torch.Tensor]] = []
        self._forward: Finding | None = None
        self._backward: Finding | None = None
        self._op = ""
        self._losses: list[torch.Tensor] = []  # of the pass
        self._told: set[str] = set()  # what has been reported
        self._rest = "loss"

    def follow(self, model: torch.nn.Module, rest: str) -> None:
        """`rest` is what made the nodes that no module made."""
        self._parameters = [(plain_name(name), p) for name, p in model.named_parameters()]
        self._rest = rest

    def on_inputs(self, module: str, inputs: list[torch.Tensor], given: list[torch.Tensor]) -> None:
        """What a module calls another one with. Infinities may be meant there, as in masks."""
        if self._forward is None:
            found = _first("forward", module, "output", inputs)
            if found is not None and found.kind == "nan":
                self._forward = self._earlier(given) or found

    def on_output(
        self, module: str, outputs: list[torch.Tensor], given: list[torch.Tensor]
    ) -> None:
        if self._forward is None:
            found = _first("forward", module, "output", outputs)
            if found is not None:
                self._forward = self._earlier(given) or found

    def _earlier(self, given: list[torch.Tensor]) -> Finding | None:
        """What was not finite before the forward pass began."""
        found = _first("data", "batch", "inputs", given)
        for name, parameter in self._parameters if found is None else ():
            found = found or _look("parameters", name.rpartition(".")[0], name, parameter)
        return found

    def claim(
        self, outputs: Iterable[torch.Tensor], module: str, inputs: Iterable[torch.Tensor] = ()
    ) -> None:
        """Marks the nodes that lead to the outputs, up to the inputs, as made by a module."""
        ends = [tensor.grad_fn for tensor in inputs if tensor.grad_fn is not None]
        nodes: list[Any] = [tensor.grad_fn for tensor in outputs]
        while nodes:
            node = nodes.pop()
            # Nodes without any following ones are those of parameters, which are kept for long.
            if node is None or not node.next_functions or any(node is end for end in ends):
                continue
            if "trainwreck" in node.metadata:
                continue
            node.metadata["trainwreck"] = module
            node.register_hook(functools.partial(self._after_node, node.name(), module))
            nodes.extend(following for following, _ in node.next_functions)

    def _after_node(self, op: str, module: str, results: Any, given: Any) -> None:
        if self._backward is None:
            self._hooks.guard("births", self._look_at_node, op, module, results, given)

    def _look_at_node(self, op: str, module: str, results: Any, given: Any) -> None:
        before = _first("backward", module, "", given)  # a sum of finite gradients may overflow
        self._backward = before or _first("backward", module, "", results)
        self._op = "" if before else op

    def on_backward(self, roots: Iterable[torch.Tensor], losses: list[torch.Tensor]) -> None:
        self.claim(roots, self._rest)
        self._losses = losses

    def on_backward_within(self, roots: Iterable[torch.Tensor]) -> None:
        """What is recomputed belongs to whom the node belongs that does it."""
        node = compat.current_node()
        self.claim(roots, "" if node is None else node.metadata.get("trainwreck", ""))

    def after_backward(self) -> None:
        """Reports what the pass has shown, where its loss or its gradients are not finite."""
        forward, backward, op = self._forward, self._backward, self._op
        self._forward, self._backward, self._op = None, None, ""
        loss = _first("forward", self._rest, "output", self._losses)
        gradient = next(self._gradients(), None)
        part = "backward" if loss is None else "forward"
        found = forward or loss or gradient
        if (loss or gradient) is None or found is None or part in self._told:
            return
        if backward is not None and found is gradient:
            found = replace(backward, tensor=gradient.tensor)
        # With a scaler, gradients overflow now and then: this must not hide what comes later.
        self._told.update({"backward", part} if found.stage.endswith("backward") else _PARTS)
        fields = asdict(found)
        self._hooks.trace.event("first_nonfinite", self._hooks.step, **fields, backward_op=op)

    def _gradients(self) -> Iterator[Finding]:
        """Of parameters, from the loss back towards the data."""
        for name, parameter in reversed(self._parameters):
            module = name.rpartition(".")[0]
            found = _look("after_backward", module, name, parameter.grad)
            if found is not None:
                yield found
