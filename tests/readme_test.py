#!/usr/bin/env python3
"""What the README shows is what there is: its scenario's lines, its command's output, its files.

Usage: readme_test.py README SCENARIOS_ROOT TRAINWRECK TRAINER
"""
import os
import re
import subprocess
import sys


def normal(line):
    return re.sub(r"\s+#.*$", "", line).strip()


def main():
    readme_path, root, trainwreck, trainer = sys.argv[1:]
    with open(readme_path, encoding="utf-8") as file:
        readme = file.read()
    failures = []
    with open(os.path.join(root, "nan/corrupt-sample.yaml"), encoding="utf-8") as file:
        scenario = {normal(line) for line in file}
    snippet = re.search(r"```yaml\n(.*?)```", readme, re.S)[1]
    for line in filter(None, map(normal, snippet.split("\n"))):
        if line not in scenario:
            failures.append(f"not in the scenario: {line}")
    console = re.search(r"```console\n\$ ci/run_scenarios.sh (.*?)\n(.*?)```", readme, re.S)
    done = subprocess.run([trainwreck, "run", *console[1].split(), "--target", trainer, "--scenarios-root", root,
                           "--output", os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), "readme")],
                          capture_output=True, text=True, check=False)
    seen = {line.split()[0] + " " + line.split()[-1] if line.startswith("PASS") else line.split()[0]
            for line in done.stdout.split("\n") if line.split()}
    for line in filter(str.split, console[2].split("\n")):
        word = line.split()[0] + " " + line.split()[-1] if line.startswith("PASS") else line.split()[0]
        if word not in seen:
            failures.append(f"not in the output: {line}")
    if done.returncode != 0:
        failures.append(f"exit {done.returncode}: {done.stderr}")
    for name in re.findall(r"\]\(([\w/.]+\.md)\)", readme):
        if not os.path.exists(os.path.join(os.path.dirname(readme_path), name)):
            failures.append(f"no such document: {name}")
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
