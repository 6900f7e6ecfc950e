#!/usr/bin/env python3
"""What the documents say of GPUs: the list at the head of docs/guide/devices.md names every section of the guide that has not run on
one, and no other; docs/measured/gpu.md names commits that exist.

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


def sections_of(text):
    """The text before the first heading, and of each section by its anchor. Lines of code are no headings."""
    prose = re.sub(r"(?ms)^```.*?^```$", "", text)
    head, *rest = re.split(r"(?m)^#{2,3} (.+)\n", prose)
    anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in rest[::2]]
    return head, dict(zip(anchors, rest[1::2]))


def differences(pages):
    """Sections (`page#anchor`) that have not run and are not in the list, and those in the list that say nothing of it."""
    head, _ = sections_of(pages["devices.md"])
    listed = {(page or "devices.md") + "#" + anchor for page, anchor in re.findall(r"\]\(([\w-]*(?:\.md)?)#([\w-]+)\)", head)}
    marked = {f"{page}#{anchor}" for page, text in pages.items() for anchor, section in sections_of(text)[1].items() if NOT_RUN.search(section)}
    return sorted(marked - listed), sorted(listed - marked)


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

    def test_a_list_that_is_not_whole_is_found(self):
        pages = {"devices.md": "# D\nNot run on a GPU yet: [a](#a-b), [b](#b), [c](c.md#c).\n## A `b`\n```\n## B\n```\nNot run on\na GPU yet.\n"
                               "## B\nRun.\n## D\nNot run on a GPU yet.\n",
                 "c.md": "## C\n(not run on a GPU yet)\n### E\nx, not run on a GPU yet\n"}
        self.assertEqual(differences(pages), (["c.md#e", "devices.md#d"], ["devices.md#b"]))

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
