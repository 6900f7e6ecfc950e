"""trainwreck breaks training runs on purpose, and checks what follows.

The command is `trainwreck`, or `python3 -m trainwreck`. A program may call `trainwreck.watch`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch

__version__: str


def watch(
    model: torch.nn.Module | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    folder: str | None = None,
    record: Iterable[str] | None = None,
) -> None:
    """Follows a training run by hooks of torch: `folder`/rank<k>.jsonl gets a line for each step.

    Call it before the first step. Where the harness runs the program (`adapter: python`), it has
    set the hooks already, and says itself where the trace goes and what is recorded on demand; then
    this only names the model and the optimizer.

    model: the module whose names the parameters have; default: the first one that is called and has
        all parameters of the optimizers, else the first one called in training
    optimizer: the one whose steps count; default: the first one that makes a step
    folder: where the trace goes without a harness; later runs append to what is there
    record: those of the signals that are recorded on demand alone, such as "update_norm"; default:
        grad_norm, applied_grad_norm, nonfinite_grads, memory_bytes
    """
    from trainwreck import install

    install.watch(model, optimizer, folder, record)


def __getattr__(name: str) -> str:
    # The wheel's version is that of its program. It is looked up late: that costs longer than the
    # rest of a start.
    if name == "__version__":
        from importlib.metadata import version

        return version("trainwreck")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
