#!/usr/bin/env python3
"""report.html in a browser: no error, no request, the numbers of verdicts.json, filters, links, hostile texts.

Usage: page_test.py TRAINWRECK TRAINER SCENARIOS_ROOT
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402
import unittest_xml  # noqa: E402

HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=2'>\" onload=\"x \x1b[31m \u202egnp.exe \u05d0\u05d1"
CASES = ["nan/corrupt-sample", "desync/unsynced-gradients"]


def setUpModule():
    # Without this, the module would be silent where nothing can be tested.
    if browser.missing():
        print(f"SKIPPED: {browser.missing()}", file=sys.stderr)


@unittest.skipIf(browser.missing(), browser.missing())
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        trainwreck, trainer, root = map(os.path.abspath, sys.argv[1:4])
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.program, cls.output = trainwreck, cls.folder + "/out"
        done = subprocess.run(
            [trainwreck, "run", *CASES, "--target", trainer, "--scenarios-root", root, "--output", cls.output,
             "--keep", "all", "--no-preflight", "--history", cls.folder + "/history.db"],
            cwd=cls.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "report.html" in done.stdout, done.stdout
        with open(cls.output + "/verdicts.json", encoding="utf-8") as file:
            cls.stored = json.load(file)
        cls.browser = browser.Browser(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def open(self, name="report.html", fragment=""):
        self.browser.open(f"{self.output}/{name}", fragment)
        self.browser.wait("return document.readyState === 'complete'")

    def write_page(self, name, edit):
        """A page of the verdicts, changed; the pictures stay."""
        stored = json.loads(json.dumps(self.stored))
        edit(stored)
        with open(self.output + "/verdicts.json", "w", encoding="utf-8") as file:
            json.dump(stored, file)
        try:
            subprocess.run([self.program, "report", self.output, "--report", f"html={self.output}/{name}"],
                           cwd=self.folder, check=True, capture_output=True)
        finally:
            with open(self.output + "/verdicts.json", "w", encoding="utf-8") as file:
                json.dump(self.stored, file)

    def test_loads_without_an_error_or_a_request(self):
        self.browser.requests()
        self.open()
        for index in range(len(CASES)):
            self.browser.run("document.getElementById('c' + arguments[0]).open = true", index)
        self.browser.wait("return document.querySelectorAll('.chart canvas').length >= 2")
        self.assertEqual(self.browser.errors(), [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith("file://" + self.output + "/report.html")], [])

    def test_numbers_are_those_of_verdicts_json(self):
        self.open()
        shown = self.browser.run("return [...document.querySelectorAll('.case')].map((e) => ({...e.dataset}))")
        self.assertEqual(len(shown), len(self.stored["verdicts"]))
        by_name = {each["name"]: each for each in shown}
        for verdict in self.stored["verdicts"]:
            of_page = by_name[verdict["case"]]
            self.assertEqual(of_page["verdict"], verdict["verdict"])
            self.assertEqual(json.loads(of_page["margin"]), verdict["worst_margin"]["value"])
            self.assertEqual(of_page["unit"], verdict["worst_margin"]["unit"])
            self.assertEqual(json.loads(of_page["seconds"]), verdict["wall_seconds"])

    def test_curves_end_where_verdicts_json_says(self):
        self.open()
        for index, verdict in enumerate(self.stored["verdicts"]):
            picture = json.loads(self.browser.run(
                "return document.getElementById('d' + arguments[0]).textContent", index))["picture"]
            self.assertEqual(picture["case"], verdict["case"])
            for arm, drawn in zip(verdict["arms"], picture["arms"]):
                self.assertEqual(len(arm["runs"]), len(drawn["runs"]), arm["arm"])
                for run, curves in zip(arm["runs"], drawn["runs"]):
                    want, got = run["final_signals"]["loss"], curves["curves"]["loss"][2][-1]
                    if isinstance(want, str) or isinstance(got, str):
                        self.assertEqual(want, got)
                    else:
                        self.assertTrue(math.isclose(want, got, rel_tol=1e-4), (want, got))

    def test_search_and_filter_and_sort(self):
        self.open()
        visible = "return [...document.querySelectorAll('.case:not([hidden])')].map((e) => e.dataset.name)"
        self.browser.type_keys("/corrupt-sample")
        self.assertEqual(self.browser.run(visible), ["nan/corrupt-sample"])
        self.assertEqual(self.browser.run("return document.getElementById('shown').textContent"), "1 of 2 cases")
        self.browser.run("const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))")
        self.browser.run("const s = document.getElementById('sort'); s.value = 'name'; s.dispatchEvent(new Event('change'))")
        self.assertEqual(self.browser.run(visible), sorted(CASES))
        self.assertEqual(self.browser.run("return [...document.getElementById('verdict').options].map((o) => o.value)"), ["", "pass"])

    def test_links_lead_to_the_case_and_to_its_runs(self):
        self.open()
        self.browser.run("document.querySelector('.cell[aria-label^=\"nan/corrupt-sample\"]').click()")
        self.browser.wait("return document.querySelector('.case[data-name=\"nan/corrupt-sample\"]').open")
        links = self.browser.run("return [...document.querySelectorAll('.folders a')].map((a) => a.href)")
        self.assertEqual(len(links), sum(len(arm["runs"]) for verdict in self.stored["verdicts"] for arm in verdict["arms"]))
        for link in links:
            self.assertTrue(os.path.isdir(link.removeprefix("file://")), link)

    def test_values_stand_under_the_cursor(self):
        self.open(fragment=f"#c{[v['case'] for v in self.stored['verdicts']].index('nan/corrupt-sample')}")
        self.browser.wait("return document.querySelector('.case[open] .chart canvas')")
        box = self.browser.run("const r = document.querySelector('.case[open] .chart').getBoundingClientRect();"
                               "return [r.x, r.y, r.width, r.height]")
        self.browser.move_to(box[0] + box[2] * 0.6, box[1] + box[3] * 0.4)
        text = self.browser.wait("return document.querySelector('.case[open] .cursor').textContent")
        self.assertRegex(text, r"^step \d+ .*control [0-9., ]+")
        self.assertEqual(self.browser.errors(), [])

    def test_ranks_have_a_timeline_in_words_too(self):
        self.open(fragment=f"#c{[v['case'] for v in self.stored['verdicts']].index('desync/unsynced-gradients')}")
        label = self.browser.wait("return document.querySelector('.case[open] .ranks')?.getAttribute('aria-label')")
        self.assertRegex(label, r"rank 0 (ended|waits in|failed in) .*; rank 1 ")

    def test_hostile_texts_do_no_harm(self):
        def edit(stored):
            for verdict in stored["verdicts"]:
                verdict.update(title=HOSTILE, reason=HOSTILE, remarks=[HOSTILE], verdict="fail",
                               **{"class": "symptom_absent"})
                for check in verdict["checks"]:
                    check.update(message=HOSTILE, seen=HOSTILE, formula=HOSTILE, place=HOSTILE, rerun=HOSTILE,
                                 **{"class": "symptom_absent"})
                for arm in verdict["arms"]:
                    arm.update(note=HOSTILE, ended=HOSTILE)
            stored["run"].update(command_line=HOSTILE, target=HOSTILE, host=HOSTILE)

        # Names of signals, units and events come from the target.
        with open(self.output + "/pictures.jsonl", encoding="utf-8") as file:
            pictures = file.read()
        with open(self.output + "/pictures.jsonl", "w", encoding="utf-8") as file:
            file.write(pictures.replace('"loss":', json.dumps(HOSTILE) + ":").replace('"fired"', json.dumps(HOSTILE)))
        try:
            self.write_page("hostile.html", edit)
        finally:
            with open(self.output + "/pictures.jsonl", "w", encoding="utf-8") as file:
                file.write(pictures)
        self.open("hostile.html")
        self.browser.run("for (const e of document.querySelectorAll('.case')) e.open = true")
        self.browser.wait("return document.querySelectorAll('.chart canvas').length >= 2")
        self.browser.run("for (const s of document.querySelectorAll('.tools label:first-child select')) {"
                         "s.value = [...s.options].find((o) => o.value.includes('img'))?.value ?? s.value;"
                         "s.dispatchEvent(new Event('change')); }")
        self.assertIn("<img src=x", self.browser.run("return document.querySelector('.dygraph-ylabel').textContent"))
        self.assertIsNone(self.browser.run("return window.hurt"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)
        self.assertEqual(self.browser.errors(), [])
        words = self.browser.run("return document.body.innerText")
        self.assertIn("<img src=x", words)  # shown as it is
        self.assertNotIn("\u202e", words)
        self.assertNotIn("\x1b", words)
        self.assertRegex(words, "2 of 2 cases did not pass")

    def test_controls_have_names(self):
        self.open(fragment="#c0")
        self.browser.wait("return document.querySelector('.case[open] .chart canvas')")
        self.assertEqual(self.browser.nameless(), [])
        self.assertEqual(self.browser.run("return document.documentElement.lang"), "en")

    @unittest.skipUnless(browser.axe(), "no axe-core (ci/test.sh installs it)")
    def test_axe_finds_no_breach_of_accessibility(self):
        dark = browser.Browser(tempfile.mkdtemp(dir=self.folder), dark=True)
        self.addCleanup(dark.close)
        for each in (self.browser, dark):
            each.open(self.output + "/report.html", "#c0")
            each.wait("return document.querySelector('.case[open] .chart canvas')")
            self.assertEqual(each.breaches(), [])
        dark.run("document.documentElement.removeAttribute('lang')")
        self.assertEqual([rule for rule, *_ in dark.breaches()], ["html-has-lang"])

    def test_tables_are_there_without_javascript(self):
        self.write_page("plain.html", lambda stored: None)
        plain = browser.Browser(tempfile.mkdtemp(dir=self.folder), javascript=False)
        try:
            plain.open(self.output + "/plain.html")
            words = plain.call("GET", "/source")
            self.assertIn("all 2 cases passed", words)
            self.assertIn("hidden=\"\"", words)  # the filter, which would do nothing
            self.assertNotIn("<canvas", words)
            self.assertIn("must not hold", words)
        finally:
            plain.close()


if __name__ == "__main__":
    unittest_xml.main(sys.argv[4:])
