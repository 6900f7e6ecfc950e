#!/usr/bin/env python3
"""The pages of compare, history, matrix, lr-range and others in a browser: of real runs with the numbers of their JSON
reports, and of stored reports, some of them hostile.

Usage: verb_pages_test.py TRAINWRECK TRAINER SCENARIOS_ROOT TESTDATA
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402
import unittest_xml  # noqa: E402

HOSTILE = "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=2'>\" onload=\"x \x1b[31m \u202egnp.exe \u05d0\u05d1"
CASE = "nan/corrupt-sample"
FREE_KEYS = ("environment", "skipped", "final_losses")  # their keys are names
VALUES = "return [...document.querySelectorAll('data')].map((e) => e.value)"
DRAWN = "return [...document.querySelectorAll('figure.plot')].every((f) => f.querySelector('canvas') || f.textContent.includes('Nothing is'))"


def setUpModule():
    # Without this, the module would be silent where nothing can be tested.
    if browser.missing():
        print(f"SKIPPED: {browser.missing()}", file=sys.stderr)


def numbers_of(value):
    """All numbers of a JSON value, as JSON's text has them."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {number for one in value for number in numbers_of(one)}
    return set() if isinstance(value, bool) else {value} if isinstance(value, (int, float)) else set()


def poisoned(value):
    if isinstance(value, str):
        return value if value in ("inf", "-inf", "nan") else HOSTILE
    if isinstance(value, list):
        return [poisoned(one) for one in value]
    if isinstance(value, dict):
        return {key: {HOSTILE: poisoned(next(iter(one.values())))} if key in FREE_KEYS and isinstance(one, dict) and one
                else poisoned(one) for key, one in value.items()}
    return value


@unittest.skipIf(browser.missing(), browser.missing())
class VerbPagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.trainwreck, cls.trainer, cls.root, testdata = map(os.path.abspath, sys.argv[1:5])
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.samples = {os.path.basename(path)[:-5]: path for path in sorted(glob.glob(testdata + "/*.json"))}
        assert len(cls.samples) == 7, cls.samples
        cls.browser = browser.Browser(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    @classmethod
    def call(cls, *arguments, statuses=(0,), target=True):
        of_target = ["--target", cls.trainer, "--scenarios-root", cls.root] if target else []
        done = subprocess.run([cls.trainwreck, *arguments, *of_target], cwd=cls.folder, capture_output=True, text=True, check=False,
                              env=dict(os.environ, TRAINWRECK_HISTORY=cls.folder + "/history.db", TRAINWRECK_CACHE=cls.folder + "/cache"))
        assert done.returncode in statuses, f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def page_of(self, report, name):
        with open(f"{self.folder}/{name}.json", "w", encoding="utf-8") as file:
            json.dump(report, file)
        self.call("report", f"{name}.json", "--report", f"html={name}.html", target=False)
        return name + ".html"

    def open(self, name):
        self.browser.requests()
        self.browser.open(f"{self.folder}/{name}")
        self.browser.wait("return document.readyState === 'complete'")
        # All that is folded is shown, and all charts are brought into view.
        self.browser.run("for (const e of document.querySelectorAll('details')) e.open = true;"
                         "for (const e of document.querySelectorAll('figure.plot')) e.scrollIntoView()")
        count = self.browser.run("return document.querySelectorAll('figure.plot').length")
        for index in range(count):
            self.browser.run("document.querySelectorAll('figure.plot')[arguments[0]].scrollIntoView()", index)
            self.browser.wait("return document.querySelectorAll('figure.plot')[%d].children.length > 1" % index)
        self.assertTrue(self.browser.run(DRAWN))

    def check_is_sound(self, name):
        self.assertEqual(self.browser.errors(), [])
        own = f"file://{self.folder}/{name}"
        # A new browser's first tab asks for parts of its own.
        self.assertEqual([url for url in self.browser.requests() if not url.startswith((own, "chrome:", "data:"))], [])
        self.assertEqual(self.browser.nameless(), [])
        if browser.axe():
            self.assertEqual(self.browser.breaches(), [])

    def check_numbers(self, report, least):
        """What the page states is in the report, digit by digit."""
        shown = [json.loads(value) for value in self.browser.run(VALUES) if value not in ("inf", "-inf", "nan")]
        self.assertGreaterEqual(len(shown), least)
        known = numbers_of(report)
        self.assertEqual([value for value in shown if value not in known], [])

    def test_stored_reports_load_without_an_error_or_a_request(self):
        for name, path in self.samples.items():
            with self.subTest(name):
                with open(path, encoding="utf-8") as file:
                    report = json.load(file)
                page = self.page_of(report, name)
                self.open(page)
                self.check_is_sound(page)
                self.check_numbers(report, 1)

    @unittest.skipUnless(browser.axe(), "no axe-core (ci/test.sh installs it)")
    def test_axe_looks_at_these_pages(self):
        """check_is_sound asks it where it is there."""
        name, path = next(iter(self.samples.items()))
        with open(path, encoding="utf-8") as file:
            self.open(self.page_of(json.load(file), name))
        self.browser.run("document.documentElement.removeAttribute('lang')")
        self.assertEqual([rule for rule, *_ in self.browser.breaches()], ["html-has-lang"])

    def test_hostile_reports_do_no_harm(self):
        for name, path in self.samples.items():
            with self.subTest(name):
                with open(path, encoding="utf-8") as file:
                    report = json.load(file)
                page = self.page_of(dict(poisoned(report), schema=report["schema"]), "hostile-" + name)
                self.open(page)
                self.check_is_sound(page)
                self.assertIsNone(self.browser.run("return window.hurt"))
                self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)
                words = self.browser.run("return document.body.innerText")
                self.assertIn("<img src=x", words)
                self.assertNotIn("\u202e", words)
                self.assertNotIn("\x1b", words)

    def test_tables_are_there_without_javascript(self):
        plain = browser.Browser(tempfile.mkdtemp(dir=self.folder), javascript=False)
        try:
            for name, words in {"comparison": "got worse", "matrix": "●", "dose": "weakest dose that shows blows_up",
                                "history": "Commits that moved something", "bisect": "run 4, seed 3: failed"}.items():
                with open(self.samples[name], encoding="utf-8") as file:
                    plain.open(f"{self.folder}/" + self.page_of(json.load(file), "plain-" + name))
                source = plain.call("GET", "/source")
                self.assertIn(words, source)
                self.assertNotIn("<canvas", source)
        finally:
            plain.close()

    def test_keys_go_through_the_cells_of_a_matrix(self):
        with open(self.samples["matrix"], encoding="utf-8") as file:
            self.open(self.page_of(json.load(file), "keys"))
        self.browser.run("document.querySelector('table.heat').focus()")
        said = "return document.getElementById('said').textContent"
        self.assertIn("nan/mine:blows_up over nan/mine (its own): fault runs: true in 5, false in 0, unknown in 0; "
                      "control runs: true in 1", self.browser.run(said))
        self.browser.type_keys("\ue014\ue015")  # right, down
        self.assertIn("slow/other:crawls over slow/other (its own): fault runs: true in 3, false in 2", self.browser.run(said))
        self.browser.run("document.activeElement.blur()")
        self.browser.type_keys("/crawls")
        self.assertEqual(self.browser.run("return document.getElementById('shown').textContent"), "1 of 2 symptoms, 2 of 2 cases")

    def test_pages_of_real_runs(self):
        """Two programs: the second trains with ten times the rate, and its scenario claims the same."""
        stack = self.folder + "/stack"
        for number, edit in enumerate(["", r'sed -i -E "s/(\"optimizer.lr\": *)[0-9.e-]+/\11.0/" "$TRAINWRECK_PLAN"']):
            with open(stack, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\n[ -z "$TRAINWRECK_PLAN" ] || {edit or ":"}\nexec "{self.trainer}" "$@"\n')
            os.chmod(stack, 0o755)
            done = subprocess.run([self.trainwreck, "run", CASE, "--target", stack, "--scenarios-root", self.root, "--isolate", "exec",
                                   "--no-preflight", "--output", f"run{number}", "--history", "real.db", "--seeds", "8"],
                                  cwd=self.folder, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, number, done.stdout + done.stderr)
        self.call("compare", "run0", "run1", "--history", "real.db", "--report", "json=compare.json,html=compare.html",
                  statuses=[1], target=False)
        with open(self.folder + "/compare.json", encoding="utf-8") as file:
            report = json.load(file)
        self.assertTrue(any(margin["worse"] for margin in report["margins"]), report["summary"])
        self.open("compare.html")
        self.browser.wait("return document.querySelectorAll('.case .chart canvas').length >= 1")
        self.check_is_sound("compare.html")
        self.check_numbers(report, len(report["margins"]))
        arms = self.browser.run("return [...document.querySelectorAll('.case .arms label')].map((e) => e.textContent.trim())")
        self.assertEqual(arms[:4], ["A: control", "B: control", "A: fault", "B: fault"])
        self.check_history()

    def check_history(self):
        text = self.call("history", CASE, "--history", "real.db", "--format", "json", "--html", "history.html", target=False)
        report = json.loads(text)
        moves = report["courses"][0]["moves"]
        self.assertEqual([(move["from"], move["to"], move["worse"]) for move in moves], [(1, 2, True)])
        self.open("history.html")
        self.check_is_sound("history.html")
        self.check_numbers(report, 10)

    def test_pages_of_searches(self):
        self.call("matrix", CASE, "--seeds", "2", "--output", "m", "--no-preflight")
        with open(self.folder + "/m/matrix.json", encoding="utf-8") as file:
            report = json.load(file)
        self.open("m/matrix.html")
        self.check_is_sound("m/matrix.html")
        cells = self.browser.run("return [...document.querySelectorAll('td[data-n]')].map((e) => e.dataset.n)")
        wanted = [" ".join(map(str, cell["fault"] + cell["control"])) for symptom in report["symptoms"] for cell in symptom["cells"]]
        self.assertEqual(cells, wanted)
        self.call("lr-range", CASE, "--rates", "4", "--seeds", "1", "--steps", "20", "--from", "0.01", "--to", "1", "--no-preflight",
                  "--html", "rates.html", "--report", "rates.json", statuses=(0, 1, 5))
        with open(self.folder + "/rates.json", encoding="utf-8") as file:
            report = json.load(file)
        self.open("rates.html")
        self.check_is_sound("rates.html")
        self.check_numbers(report, 2 * len(report["points"]) - 4)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[5:])
