"""Hands stored runs to Parquet files, TensorBoard, MLflow or Weights & Biases, by their clients.

    trainwreck export RUN --to FORMAT --output DIR      what people type
    python3 -m trainwreck.export FORMAT DIR < LINES     what it calls; LINES of `--to json`

A signal of a module is called "update_norm/head.weight", one of rank 1 "loss/rank1".
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

INVALID, INFRASTRUCTURE = 3, 7  # exit statuses, as of trainwreck
ROWS = 1 << 20  # of a row group


class Refused(Exception):
    """What is asked for cannot be done; the message is for the user."""


@dataclass
class Series:
    """One signal of one rank: values by step. Module is empty for signals of the whole model."""

    signal: str
    module: str
    rank: int
    steps: list[int]
    values: list[float]

    @property
    def tag(self) -> str:
        parts = [self.signal, self.module, f"rank{self.rank}" if self.rank > 0 else ""]
        return "/".join(filter(None, parts))


@dataclass
class Run:
    """`about` has what `trainwreck export --to json` says of a run: case, arm, recipe, verdict."""

    about: dict[str, Any]
    series: list[Series] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.about["run"])

    def seconds(self) -> Callable[[int, int], float]:
        """When a step of a rank was: since 1970, as far as the trace has its signal `time`."""
        start = 0.0
        if started := self.about.get("started"):
            start = datetime.fromisoformat(started.replace("Z", "+00:00")).timestamp()
        times = {
            one.rank: dict(zip(one.steps, one.values)) for one in self.series if one.tag == "time"
        }
        return lambda rank, step: start + times.get(rank, {}).get(step, 0.0)

    def options(self) -> dict[str, Any]:
        """The recipe and what else tells arms apart."""
        others = {key: self.about[key] for key in ("case", "arm", "seed") if key in self.about}
        return {**self.about.get("recipe", {}), **others}


def runs_of(lines: TextIO) -> Iterator[Run]:
    """Raises EOFError where the last line is missing."""
    run = None
    for line in lines:
        record = json.loads(line)
        if "run" in record:
            if run:
                yield run
            run = Run(record)
        elif "end" in record:
            if run:
                yield run
            return
        elif run and "signal" in record:
            record["values"] = [float(value) for value in record["values"]]
            run.series.append(Series(**record))
        elif run:
            run.events.append(record)
    raise EOFError("the stored runs end too early: the export is not whole")


def client(*modules: str) -> None:
    """Says what to install before anything is read."""
    for module in modules:
        try:
            __import__(module)
        except ImportError as error:
            raise Refused(
                f"this needs the package {module}, which {sys.executable} cannot import ({error}): "
                f"{sys.executable} -m pip install {module}"
            ) from error


def parquet(runs: Iterable[Run], folder: str) -> None:
    """signals, events and runs, each a file with the columns of the CSV tables."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, whole, number = pa.string(), pa.int32(), pa.float64()
    head = [("run", text), ("case", text), ("arm", text), ("seed", whole)]
    schemas = {
        "signals": [*head, ("rank", whole), ("step", whole), ("module", text), ("signal", text),
                    ("value", number)],
        "events": [*head, ("rank", whole), ("step", whole), ("time", number), ("event", text),
                   ("fields", text)],
        "runs": [*head[:3], ("kind", text), head[3], ("ranks", whole), ("steps", whole),
                 ("end", text), ("verdict", text), ("class", text), ("recipe", text),
                 ("faults", text)],
    }  # fmt: skip
    os.makedirs(folder, exist_ok=True)
    places = {name: f"{folder}/{name}.parquet" for name in schemas}
    writers = {
        name: pq.ParquetWriter(places[name] + ".tmp", pa.schema(schema))
        for name, schema in schemas.items()
    }
    waiting: dict[str, list[Any]] = defaultdict(list)

    def add(name: str, about: dict[str, Any], columns: dict[str, Any], rows: int) -> None:
        schema = pa.schema(schemas[name])
        arrays = [
            pa.array(columns[one.name], one.type)
            if one.name in columns
            else pa.repeat(pa.scalar(about.get(one.name), one.type), rows)
            for one in schema
        ]
        waiting[name].append(pa.table(arrays, schema=schema))
        if sum(table.num_rows for table in waiting[name]) >= ROWS:
            spill(name)

    def spill(name: str) -> None:
        if waiting[name]:
            writers[name].write_table(pa.concat_tables(waiting.pop(name)))

    for run in runs:
        for one in run.series:
            about = {**run.about, "rank": one.rank, "module": one.module, "signal": one.signal}
            add("signals", about, {"step": one.steps, "value": one.values}, len(one.steps))
        events: dict[str, list[Any]] = {
            key: [event[key] for event in run.events] for key in ("rank", "step", "time", "event")
        }
        events["fields"] = [json.dumps(event["fields"]) for event in run.events]
        add("events", run.about, events, len(run.events))
        about = dict(run.about)
        for key in {"recipe", "faults"} & about.keys():
            about[key] = json.dumps(about[key])
        add("runs", about, {}, 1)
    for name, writer in writers.items():
        spill(name)
        writer.close()
        os.replace(places[name] + ".tmp", places[name])


def tensorboard(runs: Iterable[Run], folder: str) -> None:
    """A folder for each run: scalars; histograms over the modules of a signal; verdict and events
    as text; the recipe as hyper-parameters."""
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard.summary import hparams

    if os.path.isdir(folder) and os.listdir(folder):
        raise Refused(f"{folder} is not empty: TensorBoard would mix old curves with new ones")
    for run in runs:
        seconds = run.seconds()
        with SummaryWriter(os.path.join(folder, run.name)) as writer:
            for one in run.series:
                for step, value in zip(one.steps, one.values):
                    writer.add_scalar(one.tag, value, step, seconds(one.rank, step))
            for (tag, rank, step), values in over_modules(run).items():
                writer.add_histogram(tag, values, step, walltime=seconds(rank, step))
            for title, text in texts_of(run).items():
                writer.add_text(title, text)
            options = {
                key: value if isinstance(value, (bool, int, float, str)) else json.dumps(value)
                for key, value in run.options().items()
            }
            metrics = {one.tag: one.values[-1] for one in run.series if one.tag == "loss"}
            for summary in hparams(options, metrics):
                writer.file_writer.add_summary(summary)


def over_modules(run: Run) -> dict[tuple[str, int, int], Any]:
    """(tag, rank, step) -> the finite values of a signal of several modules, as an array."""
    import numpy

    found: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for one in run.series:
        if one.module:
            tag = Series(one.signal, "over modules", one.rank, [], []).tag
            for step, value in zip(one.steps, one.values):
                found[tag, one.rank, step].append(value)
    arrays = {key: numpy.array(values) for key, values in found.items() if len(values) > 1}
    finite = {key: values[numpy.isfinite(values)] for key, values in arrays.items()}
    return {key: values for key, values in finite.items() if values.size}


def texts_of(run: Run) -> dict[str, str]:
    """Titles and Markdown."""
    texts = {}
    if report := run.about.get("report"):
        texts["verdict"] = report
    if run.events:
        lines = [
            f"    step {event['step']}, rank {event['rank']}: {event['event']} "
            + json.dumps(event["fields"])
            for event in run.events
        ]
        texts["events"] = "\n".join(lines)
    return texts


def mlflow(runs: Iterable[Run], where: str) -> None:
    """An experiment for each case. `where`: a folder, which gets mlflow.db, or a server's URI."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

    location, uri = None, where
    if "://" not in where:
        os.makedirs(where, exist_ok=True)
        location = Path(where).resolve().joinpath("artifacts").as_uri()
        uri = f"sqlite:///{os.path.abspath(where)}/mlflow.db"
    tracking = MlflowClient(tracking_uri=uri)
    for run in runs:
        name = run.about.get("case", "trainwreck")
        known = tracking.get_experiment_by_name(name)
        experiment = known.experiment_id if known else tracking.create_experiment(name, location)
        seconds = run.seconds()
        begin = round(seconds(-1, -1) * 1000)
        run_id = tracking.create_run(experiment, begin, run_name=run.name).info.run_id
        metrics = [
            Metric(_name(one.tag), value, round(seconds(one.rank, step) * 1000), step)
            for one in run.series
            for step, value in zip(one.steps, one.values)
        ]
        params = [Param(_name(key), str(value)) for key, value in run.options().items()]
        tags = [
            RunTag(key, str(run.about[key]))
            for key in ("kind", "end", "verdict", "class", "title")
            if run.about.get(key)
        ]
        for first in range(0, len(metrics), 1000):  # as many as the server takes at once
            tracking.log_batch(run_id, metrics=metrics[first : first + 1000])
        for first in range(0, len(params), 100):
            tracking.log_batch(run_id, params=params[first : first + 100])
        tracking.log_batch(run_id, tags=tags)
        for title, text in texts_of(run).items():
            tracking.log_text(run_id, text, f"{title}.md")
        ended = "FINISHED" if run.about.get("end") in ("completed", "decided", None) else "FAILED"
        tracking.set_terminated(run_id, ended)


def _name(text: str) -> str:
    """MLflow takes no other characters in names."""
    return re.sub(r"[^\w\-. :/]", "_", text, flags=re.ASCII)


def wandb(runs: Iterable[Run], folder: str) -> None:
    """A folder for each run, which `wandb sync` sends: cases are groups, arms are job types."""
    import wandb as client_of

    os.makedirs(folder, exist_ok=True)
    settings = client_of.Settings(silent=True, console="off", disable_git=True, disable_code=True)
    for run in runs:
        steps: dict[int, dict[str, float]] = defaultdict(dict)
        for one in run.series:
            for step, value in zip(one.steps, one.values):
                steps[step][one.tag] = value
        with client_of.init(
            mode="offline",
            dir=folder,
            project="trainwreck",
            name=run.name,
            group=run.about.get("case"),
            job_type=run.about.get("arm"),
            notes=run.about.get("report"),
            config=run.options(),
            settings=settings,
        ) as sent:
            for step in sorted(steps):
                sent.log(steps[step], step=step)
            for key in ("kind", "end", "verdict", "class"):
                if key in run.about:
                    sent.summary[key] = run.about[key]
            sent.summary["events"] = run.events


FORMATS: dict[str, tuple[Callable[[Iterable[Run], str], None], tuple[str, ...]]] = {
    "parquet": (parquet, ("pyarrow",)),
    "tensorboard": (tensorboard, ("torch", "tensorboard")),
    "mlflow": (mlflow, ("mlflow",)),
    "wandb": (wandb, ("wandb",)),
}


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in FORMATS:
        print(__doc__, file=sys.stderr)
        return 2
    write, modules = FORMATS[sys.argv[1]]
    count = 0

    def counted(runs: Iterable[Run]) -> Iterator[Run]:
        nonlocal count
        for run in runs:
            yield run
            count += 1

    try:
        client(*modules)
        write(counted(runs_of(sys.stdin)), sys.argv[2])
    except Refused as error:
        print(f"trainwreck: {error}", file=sys.stderr)
        return INVALID
    except (EOFError, OSError) as error:
        print(f"trainwreck: {error}", file=sys.stderr)
        return INFRASTRUCTURE
    print(f"wrote {count} run{'' if count == 1 else 's'} to {sys.argv[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
