"""Scenarios as tests of pytest (docs/guide/pytest.md):

    @pytest.mark.trainwreck("portable/same-seed", target="mine")
    def test_the_same_seed_trains_the_same(): pass

The harness runs the scenarios, and its verdicts are the test's outcome. The body of the test runs
afterwards, and may look at the verdicts (fixture `verdicts`).
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from trainwreck.__main__ import PROGRAM

Verdict = dict[str, Any]  # as verdicts.json has it
VERDICTS: pytest.StashKey[list[Verdict]] = pytest.StashKey()
KEYS = {"target", "seeds", "set", "suite"}
NOTHING_EXECUTED = 4  # an exit status of `trainwreck run`
LINES = {"formula": "formula", "claim": "message", "seen": "seen", "evidence": "evidence"}


class Request(NamedTuple):
    """What a mark asks for, and the command line of pytest."""

    names: tuple[str, ...]
    target: str | None
    seeds: int | None
    set: dict[str, Any]
    suite: bool  # the scenarios that come with trainwreck

    def arguments(self) -> list[str]:
        return [
            *self.names,
            *(["--suite"] if self.suite else []),
            *(["--target", self.target] if self.target else []),
            *(["--seeds", str(self.seeds)] if self.seeds else []),
            *(part for key, value in self.set.items() for part in ("--set", f"{key}={value}")),
        ]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("trainwreck", "scenarios of trainwreck")
    group.addoption("--trainwreck-target", metavar="NAME", help="run scenarios on this target")
    group.addoption("--trainwreck-seeds", metavar="N", type=int, help="with so many seeds")
    group.addoption(
        "--trainwreck-set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="with this value of a recipe key; may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "trainwreck(*names, target=None, seeds=None, set={}, suite=None): "
        "runs these scenarios of trainwreck, whose verdicts are the test's outcome",
    )


@pytest.fixture
def verdicts(request: pytest.FixtureRequest) -> list[Verdict]:
    """The verdicts of the test's scenarios, as verdicts.json has them."""
    found: list[Verdict] = request.node.stash.setdefault(VERDICTS, [])
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Runs the scenarios of a mark; the test's own body follows."""
    marker = pyfuncitem.get_closest_marker("trainwreck")
    if marker is None:
        return
    arguments = _request(marker, pyfuncitem.config).arguments()
    folder = _project(pyfuncitem.path, pyfuncitem.config.rootpath)
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary, "verdicts.json")
        status, said = _run([*arguments, "--report", f"json={report}"], folder)
        seen = _read(report)
    pyfuncitem.stash.setdefault(VERDICTS, []).extend(seen)
    if status == NOTHING_EXECUTED and seen:
        pytest.skip("; ".join(f"{one['case']}: {one['class']}" for one in seen))
    if status != 0 or not seen:
        lines = list(_failures(seen, folder)) or [said.strip()]
        pytest.fail("\n".join([f"trainwreck ended with status {status}", *lines]), pytrace=False)
    pyfuncitem.add_report_section("call", "trainwreck", said)


def _request(marker: pytest.Mark, config: pytest.Config) -> Request:
    if not marker.args or not all(isinstance(name, str) for name in marker.args):
        pytest.fail('say which scenario: @pytest.mark.trainwreck("portable/same-seed")', False)
    if unknown := marker.kwargs.keys() - KEYS:
        known = ", ".join(sorted(KEYS))
        pytest.fail(f"mark trainwreck: no {', '.join(sorted(unknown))}; there are {known}", False)
    pairs = [pair.partition("=") for pair in config.getoption("--trainwreck-set")]
    is_portable = all(name.startswith("portable/") for name in marker.args)
    return Request(
        names=marker.args,
        target=config.getoption("--trainwreck-target") or marker.kwargs.get("target"),
        seeds=config.getoption("--trainwreck-seeds") or marker.kwargs.get("seeds"),
        set={**marker.kwargs.get("set", {}), **{key: value for key, _, value in pairs}},
        suite=marker.kwargs.get("suite", is_portable),
    )


def _program() -> str:
    """That of the wheel; in a checkout of trainwreck, the one on PATH."""
    found = PROGRAM if os.path.exists(PROGRAM) else shutil.which("trainwreck")
    if found is None:
        pytest.fail(f"there is no {PROGRAM}, and no trainwreck on PATH", False)
    return found


def _project(test: Path, root: Path) -> Path:
    """The nearest folder above a test that declares targets."""
    declares = [folder for folder in test.parents if (folder / "trainwreck.yaml").exists()]
    return declares[0] if declares else root


def _run(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit status of `trainwreck run`, and what it said."""
    with subprocess.Popen(
        [_program(), "run", *arguments],
        cwd=folder,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            said, _ = process.communicate()
        except BaseException:  # pytest was interrupted: so is the harness, which ends its runs
            process.terminate()
            raise
    return process.returncode, said


def _read(report: Path) -> list[Verdict]:
    try:
        content = json.loads(report.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []  # it ended before there was a verdict
    return list(content["verdicts"])


def _failures(verdicts: list[Verdict], folder: Path) -> Iterator[str]:
    """What is wrong, and a line to paste that makes the run again."""
    for one in verdicts:
        if one["verdict"] in ("pass", "skip"):
            continue
        yield f"{one['verdict'].upper()} {one['class']} {one['case']}: {one['reason']}"
        for check in one["checks"]:
            if not check["class"]:
                continue
            yield f"  {check['class']}: '{check['check']}' in {check['arm']}"
            yield from (f"    {k:<8} {check[v]}" for k, v in LINES.items() if check[v])
            if check["rerun"]:
                yield f"    repeat   cd {shlex.quote(str(folder))} && {check['rerun']}"
