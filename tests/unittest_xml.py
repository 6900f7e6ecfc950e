"""Writes test.xml for Bazel, so that each test and each skip is counted; runs unittest."""
import os
import sys
import time
import unittest
from xml.sax.saxutils import quoteattr


class Result(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases, self.seconds = [], {}
        self.began = 0.0

    def startTest(self, test):
        super().startTest(test)
        self.cases.append(test)
        self.began = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.seconds[test] = time.monotonic() - self.began


def write_xml(path, result):
    bad = {test: text for test, text in result.failures + result.errors}
    skipped = dict(result.skipped)
    with open(path, "w", encoding="utf-8") as file:
        file.write("<testsuites><testsuite name='python'>\n")
        for test in dict.fromkeys(result.cases + list(bad) + list(skipped)):
            suite, _, name = test.id().removeprefix("__main__.").rpartition(".")
            file.write(f"<testcase classname={quoteattr(suite)} name={quoteattr(name)} time='{result.seconds.get(test, 0):.3f}'>")
            if test in bad:
                file.write(f"<failure message={quoteattr(bad[test])}/>")
            elif test in skipped:
                file.write(f"<skipped message={quoteattr(skipped[test])}/>")
            file.write("</testcase>\n")
        file.write("</testsuite></testsuites>\n")


def write_results(suite, results):
    """For tests that keep their own list: (name, seconds, what is wrong, empty where nothing is)."""
    if "XML_OUTPUT_FILE" not in os.environ:
        return
    with open(os.environ["XML_OUTPUT_FILE"], "w", encoding="utf-8") as file:
        file.write(f"<testsuites><testsuite name={quoteattr(suite)}>\n")
        for name, seconds, why in results:
            failure = f"<failure message={quoteattr(why)}/>" if why else ""
            file.write(f"<testcase classname={quoteattr(suite)} name={quoteattr(name)} "
                       f"time='{seconds:.3f}'>{failure}</testcase>\n")
        file.write("</testsuite></testsuites>\n")


def main(arguments):
    program = unittest.main(argv=sys.argv[:1] + arguments, exit=False, verbosity=2,
                            testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=2))
    if "XML_OUTPUT_FILE" in os.environ:
        write_xml(os.environ["XML_OUTPUT_FILE"], program.result)
    sys.exit(not program.result.wasSuccessful())
