"""Training programs that know nothing of trainwreck: `programs.py NAME [STEPS] [CHECKPOINT]`.

Each writes what it knows of a step as one line of JSON, to be compared with what the hooks saw.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import multiprocessing
import os
import pickle
import random
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional
from torch.optim import SGD, Adam, Optimizer
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset, dataloader

PROGRAMS: dict[str, Callable[[int], None]] = {}


def program(function: Callable[[int], None]) -> Callable[[int], None]:
    PROGRAMS[function.__name__] = function
    return function


def say(**values: Any) -> None:
    os.write(1, json.dumps(values).encode() + b"\n")  # ranks write to one stream


def make_model() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


def batches(workers: int = 0) -> Iterator[list[torch.Tensor]]:
    draw = torch.Generator().manual_seed(2)
    inputs = torch.randn(256, 8, generator=draw)
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True).sin())
    while True:
        yield from DataLoader(data, batch_size=8, num_workers=workers)


def loss_of(model: Callable[..., Any], batch: list[torch.Tensor]) -> torch.Tensor:
    return functional.mse_loss(model(batch[0]), batch[1])


def norm_of(model: nn.Module) -> float:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return float(torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients])))


def say_step(step: int, loss: float, optimizer: Optimizer, **more: Any) -> None:
    say(step=step, loss=loss, lr=optimizer.param_groups[0]["lr"], **more)


def learn(step: int, model: nn.Module, batch: list[torch.Tensor], optimizer: Optimizer) -> None:
    """A step of a loop without anything of its own."""
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    say_step(step, loss.item(), optimizer, grad_norm=norm_of(model))
    optimizer.step()


@program
def plain(steps: int) -> None:
    """Accumulation, clipping, a schedule; goes on where its checkpoint is."""
    model, data = make_model(), batches()
    optimizer = Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    path = sys.argv[3] if len(sys.argv) > 3 else ""
    begin = 0
    if path and os.path.exists(path):
        kept = torch.load(path)
        begin = kept["step"]
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        schedule.load_state_dict(state_dict=kept["schedule"])
        for _ in range(2 * begin):
            next(data)
    for step in range(begin, steps):
        loss = 0.0
        for _ in range(2):
            part = loss_of(model, next(data)) / 2
            part.backward()
            loss += part.item()
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), 0.5))
        applied = norm_of(model)
        say_step(step, loss, optimizer, grad_norm=norm, applied_grad_norm=applied)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    if path:
        parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
        torch.save({"step": steps, **{key: part.state_dict() for key, part in parts.items()}}, path)


@program
def own_clipping(steps: int) -> None:
    """Clips in a way of its own: what the norm was before is not to be seen from outside."""
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        for p in model.parameters():
            assert p.grad is not None
            p.grad.mul_(0.1 / max(0.1, float(p.grad.norm())))
        say_step(step, loss.item(), optimizer, applied_grad_norm=norm_of(model))
        optimizer.step()


@program
def clipped_in_parts(steps: int) -> None:
    """Clips by the parts of torch's function: by norms of halves of the model and all of it, by a
    norm that holds for other parts of the model, too, and by the largest gradient."""
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    utils: Any = nn.utils
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        norm, every = norm_of(model), list(model.parameters())
        halves = [every[:2], every[2:]]
        std = float(every[0].grad.std(unbiased=False))  # type: ignore[union-attr]
        if step % 3 == 0:
            parts = [utils.get_total_norm([p.grad for p in half]) for half in halves]
            by = (parts[0] ** 2 + parts[1] ** 2) ** 0.5
        elif step % 3 == 1:
            by = torch.tensor(3 * norm)
        else:
            by = utils.get_total_norm([p.grad for p in every], float("inf"))
        most = 0.2 if step < 4 else 1e3
        for half in halves if step % 3 == 0 else [every]:
            utils.clip_grads_with_norm_(half, most, by)
        if step % 3 == 0:
            utils.get_total_norm(p.grad for p in every)  # is of no matter any more
        clipped, applied = int(float(by) > most), norm_of(model)
        say_step(step, loss.item(), optimizer, grad_norm=norm, clipped=clipped,
                 applied_grad_norm=applied, **{"grad_std{0.weight}": std})  # fmt: skip
        optimizer.step()


@program
def closure(steps: int) -> None:
    """The backward pass runs inside of optimizer.step."""
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):

        def compute(step: int = step) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, next(data))
            loss.backward()
            say_step(step, loss.item(), optimizer, grad_norm=norm_of(model))
            return loss

        optimizer.step(compute)


@program
def recomputed(steps: int) -> None:
    """Runs the forward pass of a part again within the backward pass, in both ways."""
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        inputs, targets = next(data)
        inputs.requires_grad_()
        hidden = checkpoint(model[:2], inputs, use_reentrant=step % 2 == 0)
        loss = functional.mse_loss(model[2](hidden), targets)
        loss.backward()
        say_step(step, loss.item(), optimizer, grad_norm=norm_of(model))
        optimizer.step()


@program
def two_optimizers(steps: int) -> None:
    """Each has a part of the model; a step of the run is one of the first."""
    model, data = make_model(), batches()
    first = Adam(model[0].parameters(), lr=0.01)
    second = SGD(model[2].parameters(), lr=0.02)
    for step in range(steps):
        model.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        say_step(step, loss.item(), first, grad_norm=norm_of(model[0]))
        first.step()
        second.step()
        second.step()


class Lookahead(Optimizer):
    """Makes the steps of another optimizer, whose groups it shares."""

    def __init__(self, inner: Optimizer) -> None:
        super().__init__(inner.param_groups, {})
        self.inner = inner
        self.param_groups = inner.param_groups

    def step(self, closure: Any = None) -> Any:
        return self.inner.step(closure)


@program
def nested(steps: int) -> None:
    """An optimizer within an optimizer makes one step, not two."""
    model, data = make_model(), batches()
    optimizer = Lookahead(SGD(model.parameters(), lr=0.05))
    for step in range(steps):
        learn(step, model, next(data), optimizer)


class Container(Optimizer):
    """Makes its steps by those of one optimizer for each part of a model. Its own groups stay as
    they were made: schedules act on those within."""

    def __init__(self, *parts: nn.Module) -> None:
        self.optimizers = [Adam(part.parameters(), lr=0.01) for part in parts]
        every = [p for part in parts for p in part.parameters()]
        super().__init__(every, {"lr": 0.01})

    def step(self, closure: Any = None) -> None:
        for optimizer in self.optimizers:
            optimizer.step()

    def zero_grad(self, set_to_none: bool = True) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none)


class Hidden(Container):
    """Nothing of it shows which ones are within."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__(*parts)
        within = self.optimizers
        self.optimizers = []
        self.call = lambda: [optimizer.step() for optimizer in within]

    def step(self, closure: Any = None) -> None:
        self.call()


@program
def contained(steps: int) -> None:
    """A container of optimizers, whose rates warm up."""
    model, data = make_model(), batches()
    optimizer = Hidden(model) if sys.argv[3:] == ["hidden"] else Container(model[0], model[2])
    inner = optimizer.optimizers or optimizer.call.__closure__[0].cell_contents  # type: ignore[attr-defined]
    schedules = [torch.optim.lr_scheduler.LambdaLR(one, lambda n: (n + 1) / 6) for one in inner]
    for step in range(steps):
        for p in model.parameters():
            p.grad = None
        loss = loss_of(model, next(data))
        loss.backward()
        say_step(step, loss.item(), inner[0], grad_norm=norm_of(model))
        optimizer.step()
        for schedule in schedules:
            schedule.step()


class Synced(Lookahead):
    """The one within has groups of its own, with the rates of the outer one at each step, as that
    of ZeroRedundancyOptimizer has."""

    def __init__(self, inner: Optimizer) -> None:
        super().__init__(inner)
        self.param_groups = [{**group} for group in inner.param_groups]

    def step(self, closure: Any = None) -> Any:
        self.inner.param_groups[0]["lr"] = self.param_groups[0]["lr"]
        return self.inner.step(closure)


@program
def synced(steps: int) -> None:
    """A schedule acts on the outer one of two optimizers."""
    model, data = make_model(), batches()
    optimizer = Synced(SGD(model.parameters(), lr=0.05))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
    for step in range(steps):
        learn(step, model, next(data), optimizer)
        schedule.step()


@program
def scaled(steps: int) -> None:
    """A GradScaler, whose first scales are too high: these updates are skipped."""
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.001)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=10**6)
    skipped = 0
    for step in range(steps):
        optimizer.zero_grad()
        loss = 64 * loss_of(model, next(data))
        scale = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = norm_of(model)
        scaler.step(optimizer)
        scaler.update()
        overflow = int(scaler.get_scale() < scale)
        skipped += overflow
        values = {} if overflow else {"grad_norm": norm}
        say_step(
            step, loss.item(), optimizer, overflow=overflow, skipped_updates=skipped,
            loss_scale=scale, **values,
        )  # fmt: skip


@program
def unscaled(steps: int) -> None:
    """A GradScaler that is off, as scripts have it without a GPU."""
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        say_step(step, loss.item(), optimizer, grad_norm=norm_of(model))
        scaler.step(optimizer)
        scaler.update()


class Named(nn.Module):
    """A model that is called with names alone, as those of Hugging Face are."""

    def __init__(self) -> None:
        super().__init__()
        self.net = make_model()

    def forward(self, *, inputs: torch.Tensor) -> Any:
        return self.net(inputs)


@program
def by_name(steps: int) -> None:
    """Gives the model its inputs by name."""
    model, data = Named(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        inputs, targets = next(data)
        loss = functional.mse_loss(model(inputs=inputs), targets)
        loss.backward()
        say_step(step, loss.item(), optimizer, grad_norm=norm_of(model))
        optimizer.step()


def learn_and_name(steps: int, max_norm: float | None) -> None:
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        named = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        norms = {f"grad_norm{{{n}}}": float(g.norm()) for n, g in named.items() if n != "2.weight"}
        say_step(step, loss.item(), optimizer, grad_norm=norm_of(model), **norms)
        if max_norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()


@program
def named_norms(steps: int) -> None:
    """Says the norms of single gradients."""
    learn_and_name(steps, None)


@program
def named_norms_clipped(steps: int) -> None:
    """The same, and clips."""
    learn_and_name(steps, 0.01)


def statistics_of(key: str, name: str, tensor: torch.Tensor) -> dict[str, float]:
    """As their definitions have them, in fp64."""
    x = tensor.detach().double()
    log_p = x - x.logsumexp(-1, keepdim=True)
    values = {
        "norm": x.norm(),
        "mean": x.mean(),
        "std": x.std(unbiased=False),
        "max": x.abs().max(),
        "zero_share": (x == 0).double().mean(),
        "saturated_share": (x.abs() >= 0.99).double().mean(),
        "unit_spread": (x.max(-1).values - x.min(-1).values).max(),
        "softmax_entropy": -(log_p.exp() * log_p).sum(-1).mean(),
    }
    of = f"{{{name}}}" if name else ""
    return {f"{key}_{statistic}{of}": float(value) for statistic, value in values.items()}


def learn_and_read(steps: int, call: Callable[..., Any]) -> None:
    """Says what the modules compute in the two passes of a step. Evaluations do not count."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = SGD(model.parameters(), lr=0.05)
    data = batches()
    for step in range(steps):
        outputs: list[list[torch.Tensor]] = [[], [], []]
        loss = 0.0
        for _ in range(2):
            inputs, targets = next(data)
            with torch.no_grad():
                hidden = functional.linear(inputs, model[0].weight, model[0].bias)
                outputs[0].append(hidden)
                outputs[1].append(hidden.relu())
                outputs[2].append(functional.linear(hidden.relu(), model[2].weight, model[2].bias))
            part = functional.mse_loss(call(model, inputs).sum(1, keepdim=True), targets)
            part.backward()
            loss += part.item()
            with torch.no_grad():
                model(9 * inputs)
            model.eval()(9 * inputs)
            model.train()
        whole = [torch.cat(parts) for parts in outputs]
        values = statistics_of("act", "0", whole[0]) | statistics_of("act", "1", whole[1])
        say_step(step, loss, optimizer, **values, act_nonfinite=0,
                 act_norm=float(torch.cat([one.flatten() for one in whole]).norm()))  # fmt: skip
        optimizer.step()
        optimizer.zero_grad()
    pickle.dumps(copy.deepcopy(model))  # which the hooks must not keep it from


@program
def activations(steps: int) -> None:
    learn_and_read(steps, lambda model, inputs: model(inputs))


@program
def activations_recomputed(steps: int) -> None:
    """The whole model runs again within the backward pass, in both ways."""

    def call(model: nn.Module, inputs: torch.Tensor) -> Any:
        call.count += 1  # type: ignore[attr-defined]
        inputs.requires_grad_()
        return checkpoint(model, inputs, use_reentrant=call.count % 2 == 0)  # type: ignore[attr-defined]

    call.count = 0  # type: ignore[attr-defined]
    learn_and_read(steps, call)


@program
def activations_compiled(steps: int) -> None:
    fast: dict[int, Any] = {}

    def call(model: nn.Module, inputs: torch.Tensor) -> Any:
        if not fast:
            fast[0] = torch.compile(model, backend="eager")
        return fast[0](inputs)

    learn_and_read(steps, call)


@program
def parameters_read(steps: int) -> None:
    """Says what single gradients, parameters and updates are; one group has a rate of 0."""
    model, data = make_model(), batches()
    optimizer = SGD([
        {"params": model[0].parameters(), "lr": 0.05},
        {"params": model[2].parameters(), "lr": 0.0},
    ])  # fmt: skip
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        before = [p.detach().clone() for p in model.parameters()]
        assert model[0].weight.grad is not None
        values = statistics_of("grad", "0.weight", model[0].weight.grad)
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        rate = optimizer.param_groups[0]["lr"]
        optimizer.step()
        after = list(model.parameters())
        changes = [(p.detach() - q).flatten().double() for p, q in zip(after, before)]
        values |= statistics_of("param", "0.weight", after[0])
        values |= statistics_of("update", "0.weight", after[0].detach() - before[0])
        values |= statistics_of("update", "", torch.cat(changes).unsqueeze(0))
        values["updated{0.weight}"] = int((after[0] != before[0]).sum())
        if step == 0:
            values |= statistics_of("initial", "0.weight", before[0])
        known = ("saturated", "spread", "entropy", "grad_norm")
        values = {k: v for k, v in values.items() if not any(part in k for part in known)}
        say(step=step, loss=loss.item(), lr=rate, untrained=0, **values)


class OwnLoader(DataLoader[Any]):
    """Makes its iterators itself, as loaders do that keep a state."""

    def __iter__(self) -> Any:
        kinds: Any = dataloader
        kind = (
            kinds._MultiProcessingDataLoaderIter
            if self.num_workers
            else kinds._SingleProcessDataLoaderIter
        )
        if not self.persistent_workers or self._iterator is None:
            self._iterator = kind(self)
        else:
            self._iterator._reset(self)
        return self._iterator


@program
def epochs(steps: int) -> None:
    """Trains on a loader that begins again and again; evaluates on another one in between."""
    model = make_model()
    torch.manual_seed(3)
    random.seed(4)
    data = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))
    optimizer = SGD(model.parameters(), lr=0.05)
    kind = OwnLoader if "own" in sys.argv[3:] else DataLoader
    workers: dict[str, Any] = {"num_workers": 1, "persistent_workers": True}
    options = workers if "workers" in sys.argv[3:] else {}
    loader, held_out = kind(data, 8, shuffle=True, **options), DataLoader(data, 12)
    for step, (epoch, batch) in enumerate(
        (epoch, batch) for epoch in range(steps // 3 + 1) for batch in loader
    ):
        if step == steps:
            break
        with torch.no_grad() if sys.argv[3:] != ["unclear"] else contextlib.nullcontext():
            for _ in held_out if step % 3 == 0 else ():
                pass
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        known = {} if sys.argv[3:] == ["unclear"] else {"epoch": epoch}
        say(step=step, loss=loss.item(), lr=0.05, **known)
        if step == 4:
            random.random()  # in the next step


@program
def marked(steps: int) -> None:
    """Parameters that FSDP1 has marked as one rank's part; itself it needs a GPU."""
    model, data = make_model(), batches()
    for parameter in model[0].parameters():
        parameter._fsdp_flattened = True  # type: ignore[attr-defined]
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        named = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        norms = {f"grad_norm{{{n}}}": float(g.norm()) for n, g in named.items() if n[0] == "2"}
        say_step(step, loss.item(), optimizer, **norms)
        optimizer.step()


class Gain(nn.Module):
    factor = 1.0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs.sign() * self.factor * self.factor


class Odd(nn.Module):
    """Computes a number that is not finite where it is told to."""

    where = ""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.inner = nn.ModuleList([nn.Tanh(), Gain()])
        self.last = nn.Linear(16, 1)

    def forward(self, inputs: torch.Tensor) -> Any:
        hidden = self.first(inputs)
        if self.where == "between":
            hidden = -hidden.square().log().log()  # of negative numbers
        self.inner[1].factor = 1e38 if self.where == "forward" else 1.0
        hidden = hidden + self.inner[1](self.inner[0](hidden))
        if self.where == "recomputed":
            return checkpoint(self.tail, hidden, use_reentrant=True)
        return self.tail(hidden)

    def tail(self, hidden: torch.Tensor) -> torch.Tensor:
        output = self.last(hidden)
        if self.where in ("backward", "recomputed"):
            return output + (0 * output).sqrt()  # whose derivative at 0 is infinite
        return output


@program
def born(steps: int) -> None:
    """A number that is not finite is born at step 3, as the last argument says."""
    torch.manual_seed(1)
    model, data, where = Odd(), batches(), sys.argv[3]
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        inputs, targets = next(data)
        model.where = where if step == 3 else ""
        if model.where == "data":
            inputs[0, 0] = float("inf")
        if model.where == "parameters":
            model.first.weight.data[0, 0] = float("nan")
        output = model(inputs)
        if model.where == "masked":  # an infinity that does no harm
            model.inner[1](torch.full([1], -float("inf")))
        if model.where == "loss":
            output = (output - output).log()
        loss = functional.mse_loss(output, targets)
        loss.backward()
        say(step=step, loss=str(loss.item()), weight=str(model.last.weight.sum().item()))
        optimizer.step()


@program
def prefetched(steps: int) -> None:
    """Takes a batch from two worker processes before the one at hand has been trained on."""
    model, data = make_model(), batches(workers=2)
    optimizer = SGD(model.parameters(), lr=0.05)
    following = next(data)
    for step in range(steps):
        batch, following = following, next(data)
        learn(step, model, batch, optimizer)


class Stream(torch.utils.data.IterableDataset[torch.Tensor]):
    """Samples without an end; each worker has its own part of them."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = torch.utils.data.get_worker_info()
        part, parts = (0, 1) if info is None else (info.id, info.num_workers)
        for number in range(part, 1000, parts):
            generator = torch.Generator().manual_seed(number)
            yield torch.randn(9, generator=generator)


@program
def streamed(steps: int) -> None:
    """An iterable data set; takes a batch before the one at hand has been trained on."""
    workers = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    loader = torch.utils.data.DataLoader(Stream(), batch_size=4, num_workers=workers)
    model, data = make_model(), iter(loader)
    optimizer = SGD(model.parameters(), lr=0.05)
    following = next(data)
    for step in range(steps):
        batch, following = following, next(data)
        learn(step, model, [batch[:, :8], batch[:, 8:]], optimizer)


@program
def grouped(steps: int) -> None:
    """Two groups of parameters with rates of their own, and a schedule."""
    model, data = make_model(), batches()
    optimizer = SGD([
        {"params": model[0].parameters(), "lr": 0.05, "name": "body"},
        {"params": model[2].parameters(), "lr": 0.5},
    ])  # fmt: skip
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model, next(data))
        loss.backward()
        rates = {"lr{body}": optimizer.param_groups[0]["lr"]}
        rates["lr{1}"] = optimizer.param_groups[1]["lr"]
        say_step(step, loss.item(), optimizer, **rates)
        optimizer.step()
        schedule.step()


@program
def saving(steps: int) -> None:
    """Saves after step 4, with a list of states as Lightning has, and trains on."""
    model, data = make_model(), batches()
    optimizer = Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        learn(step, model, next(data), optimizer)
        if step == 4:
            parts = {"model": model.state_dict(), "optimizers": [optimizer.state_dict()]}
            torch.save(parts, sys.argv[3])


@program
def objects(steps: int) -> None:
    """Saves objects that give their state when asked, after the last step."""
    import torch.distributed.checkpoint as dcp

    model, data = make_model(), batches()
    optimizer = Adam(model.parameters(), lr=0.01)
    for step in range(steps):
        learn(step, model, next(data), optimizer)
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=sys.argv[3], no_dist=True)


@program
def compiled(steps: int) -> None:
    """A model that torch.compile has wrapped."""
    model, data = make_model(), batches()
    fast = torch.compile(model, backend="eager")
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        learn(step, fast, next(data), optimizer)


@program
def inductor(steps: int) -> None:
    """Forward pass, loss and update are compiled to machine code."""
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    fast_loss, update = torch.compile(loss_of), torch.compile(lambda: optimizer.step())
    for step in range(steps):
        optimizer.zero_grad()
        loss = fast_loss(model, next(data))
        loss.backward()
        say_step(step, loss.item(), optimizer, grad_norm=norm_of(model))
        update()


@program
def parts(steps: int) -> None:
    """A policy that is called as a whole to play alone. To train, its parts are called, and the
    first one has no parameters. One part is called when the policy is made, for its shape."""

    class Policy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.flat, self.body = nn.Flatten(), nn.Linear(8, 16)
            self.head = nn.Linear(self.body(torch.zeros(1, 8)).shape[1], 1)

        def forward(self, inputs: torch.Tensor) -> Any:
            return self.head(self.body(self.flat(inputs)).tanh())

    torch.manual_seed(1)
    teacher, policy, data = make_model(), Policy(), batches()
    optimizer = SGD(policy.parameters(), lr=0.05)
    for step in range(steps):
        inputs, targets = next(data)
        with torch.no_grad():
            teacher(inputs)
            policy.eval()(inputs)
        policy.train()
        optimizer.zero_grad()
        hidden = policy.body(policy.flat(inputs)).tanh()
        loss = functional.mse_loss(policy.head(hidden), targets)
        loss.backward()
        say_step(step, loss.item(), optimizer, grad_norm=norm_of(policy))
        optimizer.step()


@program
def guarded(steps: int) -> None:
    """Leaves out updates with a gradient that is not finite; its schedule goes on."""
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        say_step(step, loss.item(), optimizer)
        if all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None):
            optimizer.step()
        schedule.step()


@program
def normed(steps: int) -> None:
    """A loop whose model has a small module between large ones."""
    first, tanh, last = make_model()
    model = nn.Sequential(first, nn.LayerNorm(16), nn.Linear(16, 16), tanh, last)
    optimizer, data = SGD(model.parameters(), lr=0.05), batches()
    for step in range(steps):
        learn(step, model, next(data), optimizer)


@program
def dropped(steps: int) -> None:
    """Drops activations; goes on where its checkpoint is, with torch's generator."""
    model, data = nn.Sequential(*make_model()[:2], nn.Dropout(0.5), nn.Linear(16, 1)), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    path = sys.argv[3] if len(sys.argv) > 3 else ""
    begin = 0
    if path and os.path.exists(path):
        kept = torch.load(path)
        begin = kept["step"]
        model.load_state_dict(kept["model"])
        for _ in range(begin):  # the loader draws from the generator when it begins
            next(data)
        torch.set_rng_state(kept["generator"])
    for step in range(begin, steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        say_step(step, loss.item(), optimizer, training=model.training)
        optimizer.step()
    if path:
        generator = torch.get_rng_state()
        torch.save({"step": steps, "model": model.state_dict(), "generator": generator}, path)


class OnDevice(nn.Parameter):
    """Says that it is on a device of CUDA, which need not be there."""

    device = property(lambda _self: torch.device("cuda", 1))  # type: ignore[assignment]


@program
def on_device(steps: int) -> None:
    """Says what is asked of its device."""
    cuda: Any = torch.cuda
    cuda.is_initialized, cuda.device_count = lambda: True, lambda: 2
    cuda.memory_allocated = lambda device: (1 + device) << 40
    cuda.memory_reserved = lambda _device: 100 << 20
    cuda.get_device_properties = lambda _device: SimpleNamespace(total_memory=1000 << 20)
    cuda.set_per_process_memory_fraction = lambda share, device: say(share=share, of=str(device))
    torches: Any = torch
    ones = torch.ones

    def call_ones(*size: int, device: Any = None, **rest: Any) -> torch.Tensor:
        say(ones=list(size), of=str(device))
        return ones(*size, **rest)

    torches.ones = call_ones
    parameter = OnDevice(torch.randn(8))
    optimizer = SGD([parameter], lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        parameter.square().sum().backward()
        optimizer.step()


class DrawsOfDevice(nn.Module):
    """Drops activations by the generator of a device that stands in for CUDA's, or by its own."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs * torch.rand(inputs.shape, generator=self.generator).round()


@program
def dropped_on_device(steps: int) -> None:
    """Goes on with the state of the generator that its activations are dropped by."""
    cuda: Any = torch.cuda
    plain: Any = torch._C.Generator  # as torch makes those of devices itself
    cuda.default_generators = (plain().manual_seed(1), plain().manual_seed(2))
    cuda.random._lazy_call = lambda call, **_kwargs: call()
    cuda.random._lazy_init = lambda: None
    cuda.random.current_device = lambda: 1
    cuda.random.device_count = lambda: 2
    path, way = sys.argv[3:]
    own = torch.Generator().manual_seed(1)
    assert isinstance(own, torch.Generator) and isinstance(torch.default_generator, torch.Generator)
    used = own if way == "object" else cuda.default_generators[1]
    model, data = nn.Sequential(*make_model()[:2], DrawsOfDevice(used), nn.Linear(16, 1)), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    begin = 0
    if os.path.exists(path):
        kept = torch.load(path)
        begin = kept["step"]
        model.load_state_dict(kept["model"])
        for _ in range(begin):
            next(data)
        if way == "all":
            cuda.set_rng_state_all(kept["all"])
        if way == "current":
            cuda.random.set_rng_state(new_state=kept["current"])
        if way == "object":
            own.set_state(kept["object"])
    for step in range(begin, steps):
        optimizer.zero_grad()
        inputs, targets = next(data)
        with torch.random.fork_rng(devices=[]):  # sets torch's generator back, which is torch's own
            torch.rand(1)
        hidden = checkpoint(model[:2], inputs.requires_grad_(), use_reentrant=True)
        loss = functional.mse_loss(model[2:](hidden), targets)
        loss.backward()
        say_step(step, loss.item(), optimizer)
        optimizer.step()
    states = {"all": cuda.get_rng_state_all(), "current": cuda.get_rng_state()}
    kept = {"step": steps, "model": model.state_dict(), "object": own.get_state(), **states}
    torch.save(kept, path)


@program
def classes(steps: int) -> None:
    """Learns which of four classes a sample is of."""
    torch.manual_seed(1)
    inputs = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(inputs, inputs[:, :4].argmax(1)), batch_size=8)
    model = nn.Linear(8, 4)
    optimizer = SGD(model.parameters(), lr=0.05)
    for step, (batch, labels) in zip(range(steps), loader):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(batch), labels)
        loss.backward()
        say_step(step, loss.item(), optimizer)
        optimizer.step()


@program
def watched(steps: int) -> None:
    """Sets the hooks itself, and says which of two optimizers makes the steps."""
    import trainwreck

    model, data = make_model(), batches()
    other = SGD([nn.Parameter(torch.ones(()))], lr=1.0)
    optimizer = SGD(model.parameters(), lr=0.05)
    folder = sys.argv[3] if len(sys.argv) > 3 else None
    trainwreck.watch(model, optimizer, folder=folder, record=["param_norm", "grad_norm"])
    for step in range(steps):
        other.step()
        learn(step, model, next(data), optimizer)


@program
def watched_late(steps: int) -> None:
    """Sets the hooks when an optimizer and its scheduler have been made."""
    import trainwreck

    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    trainwreck.watch(optimizer=optimizer, folder=sys.argv[3])
    for step in range(steps):
        learn(step, model, next(data), optimizer)
        schedule.step()


@program
def ddp(steps: int) -> None:
    """Ranks under torchrun."""
    torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
    rank = torch.distributed.get_rank()
    model, data = make_model(), batches()
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        both = [next(data), next(data)]
        loss = loss_of(parallel, both[rank])
        loss.backward()
        say_step(step, loss.item(), optimizer, rank=rank, grad_norm=norm_of(model))
        optimizer.step()
        seen = torch.ones(())
        torch.distributed.all_reduce(seen)
    torch.distributed.destroy_process_group()
    os._exit(0)  # torch 2.11 with Gloo aborts at 1 exit in 8, "terminate called without ..."


@program
def in_child(steps: int) -> None:
    """Trains in a process that is started in this way: fork, forkserver or spawn."""
    method = sys.argv.pop(3)
    child = multiprocessing.get_context(method).Process(target=plain, args=(steps,))
    child.start()
    child.join()
    sys.exit(child.exitcode)


def ddp_of(rank: int, steps: int) -> None:
    os.environ["RANK"] = str(rank)
    ddp(steps)


@program
def in_children(steps: int) -> None:
    """Ranks without torchrun: the program starts them itself."""
    os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[3])
    torch.multiprocessing.spawn(ddp_of, (steps,), nprocs=2)


@program
def collectives(steps: int) -> None:
    """Calls collectives in many ways; at step 3 rank 1 is late. Says how long it waits itself."""
    dist = torch.distributed
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    alone = [dist.new_group([one]) for one in range(2)][rank]
    model, data = make_model(), batches()
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        both = [next(data), next(data)]
        loss = loss_of(parallel, both[rank])
        time.sleep(0.5 * (step == 3 and rank == 1))
        begin = time.monotonic()
        loss.backward()
        seen = torch.full((2, 3), float(rank))
        work = dist.all_reduce(seen, op=dist.ReduceOp.MAX, async_op=True)
        dist.all_reduce(torch.ones(7), group=alone)  # of one rank: not to be compared with others
        work.wait()
        if sys.argv[3:] == ["functional"]:
            from torch.distributed import _functional_collectives as functional_ones

            seen = functional_ones.all_reduce(seen, "sum", dist.group.WORLD) + 1
        dist.broadcast(torch.ones(5, dtype=torch.int64), 1)
        waited = time.monotonic() - begin
        say(step=step, loss=loss.item(), lr=0.05, rank=rank, seen=seen.sum().item(), waited=waited)
        optimizer.step()
    os._exit(0)


def add_up(way: str, own: torch.Tensor) -> torch.Tensor:
    """What two ranks have together, by a collective that is called in this way."""
    dist: Any = torch.distributed
    if way in ("at_once", "later"):
        work = dist.all_reduce(own, async_op=way == "later")
        if way == "later":
            work.wait()
        return own
    if way == "functional":
        from torch.distributed import _functional_collectives as functional_ones

        return functional_ones.all_reduce(own, "sum", dist.group.WORLD) + 0
    if way == "within_an_operation":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Partial

        mesh = init_device_mesh("cpu", (2,))
        return functional.relu(DTensor.from_local(own, mesh, [Partial()])).to_local()
    both, half = torch.zeros(4), torch.zeros(1)
    if way == "gathered":
        dist.all_gather_into_tensor(both, own)
    if way == "gathered_in_a_list":
        dist.all_gather(list(both.view(2, 2).unbind()), own)
    if way == "sent":
        dist.broadcast(own, 0)
    if way == "exchanged":
        sizes = [3, 1] if dist.get_rank() == 0 else [1, 3]
        dist.all_to_all_single(both, own.repeat(2), sizes, sizes)
    if way == "scattered":
        dist.reduce_scatter_tensor(half, own, async_op=True).wait()
    if way == "scattered_in_a_list":
        dist.reduce_scatter(half, list(own.split(1)))
    return half if "scattered" in way else own if way == "sent" else both


@program
def summed(steps: int) -> None:
    """Adds up two numbers of each rank, or hands them on, by these ways in turns, and says what it
    sees."""
    dist = torch.distributed
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=8))
    rank, ways = dist.get_rank(), sys.argv[3:] or ["at_once"]
    model, data = make_model(), batches()
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model, next(data))
        loss.backward()
        seen = add_up(ways[step % len(ways)], torch.full((2,), rank + 1.0))
        say_step(step, loss.item(), optimizer, rank=rank, seen=seen.sum().item())
        optimizer.step()
    os._exit(0)


@program
def sharded(steps: int) -> None:
    """Ranks hold parts of each parameter (FSDP2); goes on where its checkpoint is."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=15))
    rank = torch.distributed.get_rank()
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    model, data = make_model(), batches()
    for part in () if "whole" in sys.argv[4:] else (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
    optimizer = Adam(model.parameters(), lr=0.01)
    folder, begin = sys.argv[3], 0
    saving = torch.distributed.new_group()  # of the thread that saves
    if os.path.exists(folder):
        whole, moments = get_state_dict(model, optimizer)
        state = {"model": whole, "optimizer": moments, "step": torch.zeros(())}
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=whole, optim_state_dict=moments)
        begin = int(state["step"])
        for _ in range(2 * begin):
            next(data)
    for step in range(begin, steps):
        optimizer.zero_grad()
        both = [next(data), next(data)]
        loss = loss_of(model, both[rank])
        loss.backward()
        norms = {}
        if "unclipped" not in sys.argv[4:]:
            utils: Any = nn.utils
            if step % 2:
                norm = utils.get_total_norm([p.grad for p in model.parameters()]).full_tensor()
                utils.clip_grads_with_norm_(model.parameters(), 0.5, norm)
            else:
                norm = utils.clip_grad_norm_(model.parameters(), 0.5).full_tensor()
            norms = {"grad_norm": norm.item(), "clipped": int(norm > 0.5)}
        say_step(step, loss.item(), optimizer, rank=rank, **norms)
        optimizer.step()
        if step + 1 in (3, steps) and "unclipped" not in sys.argv[4:]:
            whole, moments = get_state_dict(model, optimizer)
            state = {"model": whole, "optimizer": moments, "step": torch.tensor(step + 1.0)}
            if step + 1 == steps:
                dcp.save(state, checkpoint_id=folder)
            else:
                later = dcp.async_save(state, checkpoint_id=folder + "-3", process_group=saving)
    if begin == 0 and "unclipped" not in sys.argv[4:]:
        later.result()
    torch.distributed.barrier()
    os._exit(0)


@program
def born_elsewhere(steps: int) -> None:
    """One rank of two has a NaN in its batch at step 3."""
    torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank()
    model, data = make_model(), batches()
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        both = [next(data), next(data)]
        both[1][0][0, 0] = float("nan") if step == 3 else 0.0
        loss_of(parallel, both[rank]).backward()
        optimizer.step()
    os._exit(0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    PROGRAMS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 8)
