#!/usr/bin/env python3
"""Tells trainwreck the lies of lies.py, all in one invocation, and asserts the answer to each.

Prints "ok NAME" or "FAILED NAME: why". Run from the root of the checkout.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lies  # noqa: E402
import unittest_xml  # noqa: E402

CALL_SECONDS = 600


def answer_of(verdict):
    """The verdict as an answer, and all the words that go with it."""
    found = verdict["verdict"] + (f"/{verdict['class']}" if verdict["class"] else "")
    words = [verdict["reason"], *verdict["remarks"]]
    words += [f"remedy '{name}' only undoes the fault" for name in verdict["undo_remedies"]]
    words += [check["message"] + " " + check["seen"] for check in verdict["checks"] if check["class"]]
    return found, "\n".join(words)


class Bench:
    def __init__(self, options, folder):
        self.trainwreck = os.path.abspath(options.trainwreck)
        self.liar = os.path.abspath(options.liar)
        self.folder = pathlib.Path(folder)
        self.root = self.folder / "scenarios"
        self.root.mkdir()

    def call(self, *arguments):
        command = [self.trainwreck, *map(str, arguments), "--target", self.liar, "--color", "never",
                   "--scenarios-root", str(self.root)]
        return subprocess.run(command, cwd=self.folder, text=True, check=False, capture_output=True,
                              timeout=CALL_SECONDS)

    def write(self, one):
        file = self.root / f"{one['name']}.yaml"
        file.write_text(json.dumps(one["scenario"], indent=1))  # JSON is YAML
        return file

    def refused(self, one):
        """The answer of `validate`."""
        done = self.call("validate", self.write(one))
        (self.root / f"{one['name']}.yaml").unlink()
        return ("refused" if done.returncode == 3 else "valid"), done.stdout + done.stderr

    def run(self, told, *arguments):
        files = [self.write(one) for one in told]
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        done = self.call("run", *files, "--full", "--report", f"json={report}",
                         "--output", self.folder / "out", *arguments)
        if not report.exists():
            sys.exit(f"no report, exit status {done.returncode}: {done.stdout[-3000:]} {done.stderr[-3000:]}")
        verdicts = json.loads(report.read_text())["verdicts"]
        return done.returncode, {verdict["scenario"]: verdict for verdict in verdicts}


def check(one, found, words):
    """Empty, or what is wrong with the answer."""
    if found != one["answer"]:
        return f"{found} instead of {one['answer']}: {words[:600]}"
    if one["words"] not in words:
        return f"does not say '{one['words']}': {words[:600]}"
    return ""


def gates(bench):
    """What happened counts for gates and for the exit status, not what was expected."""
    def told(name, **parts):
        before = len(lies.LIES)
        lies.lie(name, "pass", **parts)
        one = lies.LIES.pop()
        assert len(lies.LIES) == before
        return one

    skip = told("expects-a-skip", requires={"features": ["antigravity"]},
                expect={"verdict": "skip", "class": "requires:antigravity", "reason": "planted"})
    crash = told("expects-a-crash", script="control:exit1@5",
                 expect={"verdict": "error", "class": "crash", "reason": "planted"})
    truth = told("the-truth-again")
    wanted = [
        ("nothing-but-an-expected-skip", [skip], [], 4),
        ("an-expected-skip-beside-a-pass", [skip, truth], [], 0),
        ("max-skips-counts-an-expected-skip", [skip, truth], ["--max-skips", "0"], 6),
        ("require-wants-what-was-executed", [skip, truth], ["--require", "expects-a-skip"], 6),
        ("require-takes-no-expected-error", [crash, truth], ["--require", "expects-a-crash"], 6),
        ("an-expected-error-passes-without-a-gate", [crash, truth], [], 0),
        ("require-of-a-pass", [crash, truth], ["--require", "the-truth-again"], 0),
    ]
    results = []
    for name, scenarios, arguments, status in wanted:
        found, _ = bench.run(scenarios, *arguments)
        for one in scenarios:
            (bench.root / f"{one['name']}.yaml").unlink()
        results.append((f"gate-{name}", "" if found == status else f"exit status {found} instead of {status}"))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainwreck", required=True)
    parser.add_argument("--liar", required=True)
    parser.add_argument("-k", default="", help="only the lies whose name contains this")
    options = parser.parse_args()
    told = [one for one in lies.LIES if options.k in one["name"]]
    names = [one["name"] for one in lies.LIES]
    results = [("at-least-200-lies", "" if len(names) >= 200 else f"only {len(names)}"),
               ("each-has-its-name", "" if len(set(names)) == len(names) else "two have one name")]
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for one in told:
            if one["answer"] == "refused":
                results.append((one["name"], check(one, *bench.refused(one))))
        judged = [one for one in told if one["answer"] != "refused"]
        _, verdicts = bench.run(judged)
        for one in judged:
            if one["name"] not in verdicts:
                results.append((one["name"], "no verdict"))
            else:
                results.append((one["name"], check(one, *answer_of(verdicts[one["name"]]))))
            (bench.root / f"{one['name']}.yaml").unlink()
        if not options.k:
            results += gates(bench)
    for name, why in results:
        print(f"FAILED {name}: {why}" if why else f"ok {name}")
    unittest_xml.write_results("lies", [(name, 0, why) for name, why in results])
    return any(why for _, why in results)


if __name__ == "__main__":
    sys.exit(main())
