#!/usr/bin/env python3
"""Counts the test cases of a Bazel run from its build event file: `N passed, N failed, N skipped`.

    count_tests.py EVENTS [CHECK=passed|failed|skipped ...]     with checks that ran outside of Bazel

A target that did not build, timed out or left no readable test.xml counts as one failed case.
"""
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def read_events(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def count_cases(path):
    """Passed, failed and [(case, reason)] skipped of one test.xml."""
    passed, failed, skipped = 0, 0, []
    for case in ElementTree.parse(path).iter("testcase"):
        name = ".".join(filter(None, (case.get("classname"), case.get("name"))))
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif skip is not None or case.get("result") == "skipped" or case.get("status") == "notrun":
            reason = (skip.get("message") or skip.text or "") if skip is not None else ""
            skipped.append((name, " ".join(reason.split())))
        else:
            passed += 1
    return passed, failed, skipped


def main():
    passed, failed, skipped = 0, 0, []
    results = {}
    for event in read_events(sys.argv[1]):
        kind = event.get("id", {})
        if "testResult" in kind and "testResult" in event:
            results.setdefault(kind["testResult"]["label"], []).append(event["testResult"])
        elif event.get("aborted", {}).get("reason") == "SKIPPED":
            print(f"SKIPPED {kind.get('targetCompleted', {}).get('label', '?')}: not for this machine (no CUDA toolkit?)")
        elif "targetCompleted" in kind and not event.get("completed", {}).get("success", False):
            print(f"NOT BUILT {kind['targetCompleted']['label']}")
            failed += 1
    for label, attempts in sorted(results.items()):
        for result in attempts:
            files = {out["name"]: out.get("uri", "") for out in result.get("testActionOutput", [])}
            path = urllib.parse.unquote(urllib.parse.urlparse(files.get("test.xml", "")).path)
            try:
                good, bad, skips = count_cases(path)
            except (OSError, ElementTree.ParseError):
                good, bad, skips = 0, 0, []
            if result.get("status") != "PASSED" and bad == 0:
                bad = 1
            if result.get("status") == "PASSED" and good + bad + len(skips) == 0:
                good = 1
            if bad:
                print(f"FAILED {label}")
            for name, reason in skips:
                print(f"SKIPPED {label} {name}: {reason or 'no reason given'}")
            passed, failed = passed + good, failed + bad
            skipped += skips
    for check in sys.argv[2:]:
        name, _, outcome = check.rpartition("=")
        if outcome == "passed":
            passed += 1
        elif outcome == "skipped":
            print(f"SKIPPED {name}")
            skipped.append((name, ""))
        else:
            print(f"FAILED {name}")
            failed += 1
    if passed + failed == 0:
        print("no test was executed")
        failed = 1
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
