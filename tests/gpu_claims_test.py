#!/usr/bin/env python3
"""What is said of GPUs: the list at the head of docs/guide/devices.md names every section of the guide that has not run on one, and no
other; the code of each such section says it, too; README.md claims no more than these pages; docs/measured/gpu.md names commits that exist.

Usage: gpu_claims_test.py CHECKOUT
"""
import glob
import os
import re
import subprocess
import sys
import unittest

import unittest_xml

ROOT = sys.argv.pop(1)
NOT_RUN = re.compile(r"not\s+run\s+on\s+a\s+GPU\s+yet", re.IGNORECASE)

# By section, the files with the code that it is about.
CODE = {
    "devices.md#assertions-on-the-device": ["harness/launch/device_assert.cc", "trainer/telemetry/nonfinite.cc"],
    "devices.md#collectives": ["harness/launch/pace.h", "trainer/devices/backend_communicator.h"],
    "devices.md#cuda-graphs": ["scenarios/twins/graphs.yaml"],
    "devices.md#memory": ["trainer/devices/device_memory.h"],
    "devices.md#runs-beside-each-other": ["harness/launch/gpu_memory.h"],
    "devices.md#sensors": ["trainer/devices/nvml.h"],
    "devices.md#sums-in-16-bits": ["trainer/recipe/recipe.h"],
    "devices.md#what-a-step-took": ["trainer/devices/nvtx_ranges.h"],
    "devices.md#which-attention-is-taken": ["trainer/models/attention_backend.h"],
    "scenario.md#how-much-of-the-machine-is-used": ["trainer/flops.h"],
    "scenario.md#state-of-the-optimizer-in-8-bits-on-disk-or-divided-among-ranks": ["trainer/optimizers/optimizers.cc"],
    "scenario.md#waiting-for-other-ranks": ["trainer/ranks/side_stream.h"],
}


def sections_of(text):
    """The text before the first heading, and of each section by its anchor. Lines of code are no headings."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", text)
    head, *rest = re.split(r"(?m)^#{2,3} (.+)\n", prose)
    anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in rest[::2]]
    return head, dict(zip(anchors, rest[1::2]))


def listed_in(page):
    head, _ = sections_of(page)
    return {(page or "devices.md") + "#" + anchor for page, anchor in re.findall(r"\]\(([\w-]*(?:\.md)?)#([\w-]+)\)", head)}


def read(path):
    with open(f"{ROOT}/{path}", encoding="utf-8") as file:
        return file.read()


def is_marked(code):
    return NOT_RUN.search(re.sub(r"\n\s*(//|#)", "", code)) is not None


def differences(pages):
    """Sections (`page#anchor`) that have not run and are not in the list, and those in the list that say nothing of it."""
    listed = listed_in(pages["devices.md"])
    marked = {f"{page}#{anchor}" for page, text in pages.items() for anchor, section in sections_of(text)[1].items() if NOT_RUN.search(section)}
    return sorted(marked - listed), sorted(listed - marked)


def too_much(readme, devices, measured):
    """What README.md says of GPUs that the pages do not, or leaves out."""
    one_line = [" ".join(text.split()) for text in (readme, devices, measured)]
    passed = r"at least (\d+) (?:different )?cases of one rank,? have passed"
    cases = [re.findall(passed, text, re.IGNORECASE) for text in (one_line[0], one_line[2])]
    wrong = []
    if len(cases[0]) != 1 or cases[0] != cases[1]:
        wrong.append(f"cases that have passed: {cases}")
    if ("of several GPUs and of NCCL between ranks has **not run yet**" in one_line[1]) != ("nothing has run on several GPUs yet" in one_line[0]):
        wrong.append("several GPUs")
    if listed_in(devices) and not ("was changed since has not run on a GPU as it is now" in one_line[0] and "lists what has not run" in one_line[0]):
        wrong.append("that a list of what has not run exists")
    return wrong


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)


class GpuClaims(unittest.TestCase):
    def test_the_list_of_what_has_not_run_is_whole(self):
        pages = {}
        for path in glob.glob(ROOT + "/docs/guide/*.md"):
            with open(path, encoding="utf-8") as file:
                pages[os.path.basename(path)] = file.read()
        self.assertGreater(len(sections_of(pages["devices.md"])[1]), 10)
        self.assertEqual(differences(pages), ([], []))

    def test_the_code_says_it_too(self):
        self.assertEqual(set(CODE), listed_in(read("docs/guide/devices.md")), "a section that has run: take the marks off its files")
        self.assertEqual([path for paths in CODE.values() for path in paths if not is_marked(read(path))], [])
        others = glob.glob(ROOT + "/*/**/*.h", recursive=True) + glob.glob(ROOT + "/*/**/*.cc", recursive=True)
        marked = {os.path.relpath(path, ROOT) for path in others if is_marked(read(os.path.relpath(path, ROOT)))}
        self.assertEqual(marked - {path for paths in CODE.values() for path in paths}, set())

    def test_a_list_that_is_not_whole_is_found(self):
        pages = {"devices.md": "# D\nNot run on a GPU yet: [a](#a-b), [b](#b), [c](c.md#c).\n## A `b`\n```\n## B\n```\nNot run on\na GPU yet.\n"
                               "## B\nRun.\n## D\nNot run on a GPU yet.\n",
                 "c.md": "## C\n(not run on a GPU yet)\n### E\nx, not run on a GPU yet\n"}
        self.assertEqual(differences(pages), (["c.md#e", "devices.md#d"], ["devices.md#b"]))

    def test_the_readme_claims_no_more_than_the_pages(self):
        pages = [read(path) for path in ("README.md", "docs/guide/devices.md", "docs/measured/gpu.md")]
        self.assertEqual(too_much(*pages), [])
        for wrong, index, before, after in (("cases that", 0, "least 45 cases", "least 54 cases"), ("cases that", 2, "least 45 diff", "least 46 diff"),
                                            ("several GPUs", 0, "several GPUs yet", "two GPUs"), ("that a list", 0, "not run;", "run;")):
            changed = [page.replace(before, after) if i == index else page for i, page in enumerate(pages)]
            self.assertNotEqual(changed, pages, before)
            self.assertEqual([line[:len(wrong)] for line in too_much(*changed)], [wrong], before)

    def test_the_commits_of_the_report_exist(self):
        with open(ROOT + "/docs/measured/gpu.md", encoding="utf-8") as file:
            commits = sorted(set(re.findall(r"[`|] ?([0-9a-f]{7,40}) ?[`|]", file.read())))
        self.assertGreater(len(commits), 3)
        try:
            if git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
                self.skipTest("NOT VERIFIED: the history of git is not at hand")
        except FileNotFoundError:
            self.skipTest("NOT VERIFIED: there is no git")
        self.assertEqual([commit for commit in commits if git("cat-file", "-e", commit + "^{commit}").returncode != 0], [])


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
