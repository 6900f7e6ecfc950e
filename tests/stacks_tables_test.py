#!/usr/bin/env python3
"""The tables of docs/measured/stacks.md, repeated: the portable scenarios on the stacks, with hooks and at level 0. They are found with
the Python that TRAINWRECK_STACKS_PYTHON names (`ci/test.sh --with-python-stacks` makes one); without, all but the tables. shape is skipped.

Usage: stacks_tables_test.py TRAINWRECK FOLDER [unittest options]

Each arm has one seed, or as many as TRAINWRECK_STACKS_SEEDS says. A cell that names several verdicts takes each: it depends on the moment.
"""
import json
import os
import re
import sys

import unittest_xml
from stacks_case import SUITE, StacksCase, block_of, needs, takes_long

SEEDS = os.environ.get("TRAINWRECK_STACKS_SEEDS", "1")
WITH_HOOKS = ("Rows with hooks", "Faults of the hooks, and their twins")
WITHOUT_HOOKS = ("Without hooks",)
TORCHTITAN = ("torchtitan",)  # it has a section of its own
STACKS = ("plain loop", "Hugging Face", "Lightning", "accelerate", "DDP", "x-transformers")


def rows_of(table):
    """By scenario, the cells by stack."""
    heads, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    stacks = [head.partition(",")[0] for head in heads]
    return {cells[0]: dict(zip(stacks[1:], cells[1:])) for cells in lines}


def cells_of(stack, sections):
    """By scenario, what the tables of these sections of the page say of a stack."""
    with open("docs/measured/stacks.md", encoding="utf-8") as file:
        parts = re.split(r"(?m)^## (.*)\n", file.read())
    cells = {}
    for section in sections:
        for table in re.findall(r"(?m)^\| scenario \|.*(?:\n\|.*)+", parts[parts.index(section) + 1]):
            cells.update((row, of[stack]) for row, of in rows_of(table).items() if stack in of)
    return cells


def verdicts_in(cell):
    """Those that it names. What it says without any is why the row does not apply."""
    return set(re.findall(r"\b(pass|fail|error|inconclusive)\b", cell)) or {"skip"}


def is_twin(row):
    with open(f"{SUITE}/portable/{row}.yaml", encoding="utf-8") as file:
        return "\ntwins:" in file.read()


class StacksTablesTest(StacksCase):
    def test_the_shape_of_the_tables(self):
        """Each stack has 30 rows and 12 twins, and 15 rows besides twins pass on it without hooks."""
        for stack, (hooks, without) in {**dict.fromkeys(STACKS, (WITH_HOOKS, WITHOUT_HOOKS)), "torchtitan": (TORCHTITAN, TORCHTITAN)}.items():
            applied = [row for row, cell in cells_of(stack, hooks).items() if verdicts_in(cell) != {"skip"}]
            twins = list(filter(is_twin, applied))
            self.assertGreaterEqual(len(applied) - len(twins), 30, stack)
            self.assertGreaterEqual(len(twins), 12, stack)
            logged = "without hooks" if without == TORCHTITAN else stack
            passes = [row for row, cell in cells_of(logged, without).items() if "pass" in verdicts_in(cell) and not is_twin(row)]
            self.assertGreaterEqual(len(passes), 15, stack)

    def verdicts(self, target, rows):
        """By scenario, the verdicts of its cases, and what was printed. Of `rows`; None: of all."""
        self.replace("../suite/portable/defaults.yaml", "seeds: 2", f"seeds: {SEEDS}")
        names = ["portable/" + row for row in rows] if rows else ["portable/*"]
        said = self.trainwreck("run", *names, "--target", target, "--output", "out", "--suite", "--scenarios-root", self.suite, status=None).stdout
        with open(f"{self.folder}/out/verdicts.json", encoding="utf-8") as file:
            cases = json.load(file)["verdicts"]
        found, last = {}, {}
        for case in cases:
            row = case["scenario"].partition("/")[2]
            found.setdefault(row, set()).add(case["verdict"])
            if case["arms"] and case["arms"][0]["steps"]:
                last[row] = case["arms"][0]["steps"][-1]  # of control
        # After its last step a rank of torchrun is aborted now and then: the page says more.
        aborted = r"(?m)^(?:ERROR|FAIL +control_unhealthy) .* portable/([\w-]+).*\n(?: .*\n)*? .* was killed by SIGABRT after step (\d+)(?: in attempt \d+)?;"
        for row, step in re.findall(aborted, said):
            if int(step) == last.get(row):
                found.pop(row, None)
        return found, said

    def assert_table(self, stack, sections, target, rows=None):
        found, said = self.verdicts(target, rows)
        cells = cells_of(stack, sections)
        wrong = []
        for row, verdicts in found.items():
            seen = next((one for one in ("error", "inconclusive", "fail", "pass") if one in verdicts), "skip")
            if row not in cells:
                if seen != "skip":
                    wrong.append(f"{row}: {seen}, and the page has no row")
            elif seen not in verdicts_in(cells[row]) and cells[row] != "not run":
                wrong.append(f"{row}: {seen}, the page says: {cells[row]}")
        self.assertEqual(wrong, [], said)
        self.assertGreaterEqual(len([row for row in found if row in cells]), len(rows or cells) - 3)  # as many as may have been aborted

    def assert_table_of_page(self, stack, page, target, rows=None, sections=WITH_HOOKS):
        for name in ("train.py", "trainwreck.yaml"):
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
                file.write(block_of(page, name))
        self.assert_table(stack, sections, target, rows)

    @needs("torch")
    @takes_long
    def test_a_plain_loop(self):
        self.assert_table("plain loop", WITH_HOOKS, "hooked")

    @needs("torch", "transformers", "accelerate")
    @takes_long
    def test_hugging_face(self):
        self.assert_table_of_page("Hugging Face", "huggingface", "hf")

    @needs("torch", "lightning")
    @takes_long
    def test_lightning(self):
        self.assert_table_of_page("Lightning", "lightning", "lightning")

    @needs("torch", "accelerate")
    @takes_long
    def test_accelerate(self):
        rows = cells_of("accelerate", WITH_HOOKS)
        self.assert_table_of_page("accelerate", "accelerate", "accelerate", [row for row in rows if "rank" not in row])

    @needs("torch", "accelerate")
    @takes_long
    def test_ranks_of_accelerate(self):
        rows = cells_of("accelerate", WITH_HOOKS)
        self.assert_table_of_page("accelerate", "accelerate", "accelerate-ranks", [row for row in rows if "rank" in row])

    @needs("torch")
    @takes_long
    def test_ranks_of_torchrun(self):
        self.assert_table_of_page("DDP", "torchrun", "ddp")

    @needs("torch", "x_transformers")
    @takes_long
    def test_x_transformers(self):
        self.assert_table_of_page("x-transformers", "x-transformers", "x-transformers")

    @needs("torch", "torchtitan.train")
    @takes_long
    def test_torchtitan(self):
        self.assert_table_of_page("torchtitan", "torchtitan", "torchtitan", sections=TORCHTITAN)

    @needs("torch", "torchtitan.train")
    @takes_long
    def test_ranks_of_torchtitan(self):
        self.assert_table_of_page("FSDP2", "torchtitan", "torchtitan-fsdp", list(cells_of("FSDP2", TORCHTITAN)), sections=TORCHTITAN)

    # Level 0: without_hooks.yaml declares what each program itself logs, and no hook is set.

    def assert_table_without_hooks(self, stack, target, sections=WITHOUT_HOOKS):
        os.rename(self.folder + "/without_hooks.yaml", self.folder + "/trainwreck.yaml")
        for page, folder in {"huggingface": "huggingface", "lightning": "lightning", "accelerate": "accelerate", "torchrun": "ddp",
                             "torchtitan": "torchtitan", "x-transformers": "x-transformers"}.items():
            os.makedirs(f"{self.folder}/{folder}")
            with open(f"{self.folder}/{folder}/train.py", "w", encoding="utf-8") as file:
                file.write(block_of(page, "train.py"))
        self.assert_table(stack, sections, target)

    @needs("torch")
    @takes_long
    def test_a_plain_loop_without_hooks(self):
        self.assert_table_without_hooks("plain loop", "plain")

    @needs("torch", "transformers", "accelerate", "tensorboard")
    @takes_long
    def test_hugging_face_without_hooks(self):
        self.assert_table_without_hooks("Hugging Face", "huggingface")

    @needs("torch", "lightning")
    @takes_long
    def test_lightning_without_hooks(self):
        self.assert_table_without_hooks("Lightning", "lightning")

    @needs("torch", "accelerate")
    @takes_long
    def test_accelerate_without_hooks(self):
        self.assert_table_without_hooks("accelerate", "accelerate")

    @needs("torch")
    @takes_long
    def test_ranks_of_torchrun_without_hooks(self):
        self.assert_table_without_hooks("DDP", "ddp")

    @needs("torch", "torchtitan.train")
    @takes_long
    def test_torchtitan_without_hooks(self):
        self.assert_table_without_hooks("without hooks", "torchtitan", TORCHTITAN)

    @needs("torch", "x_transformers")
    @takes_long
    def test_x_transformers_without_hooks(self):
        self.assert_table_without_hooks("x-transformers", "x-transformers")


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
