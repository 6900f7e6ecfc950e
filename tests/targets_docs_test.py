#!/usr/bin/env python3
"""Does what a page such as docs/guide/targets.md says, in its order: writes its files, runs its commands, compares their output.

A block that begins with ```LANGUAGE NAME is a file; one that begins with ```console holds commands and their output, in which
`...` stands for any text.

Usage: targets_docs_test.py TRAINWRECK DOCUMENT FILES COMMANDS
It has at least so many files and blocks of commands.
"""
import os
import re
import subprocess
import sys
import tempfile


def matches(expected, seen):
    return re.fullmatch(".*".join(map(re.escape, expected.split("..."))), seen, re.S) is not None


def blocks_of(document):
    """(language, name or "", text) of each block of code."""
    with open(document, encoding="utf-8") as file:
        return re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", file.read(), re.M | re.S)


def write(folder, name, text):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def environment_in(folder, trainwreck):
    """That of a user who works in the folder, with the program on the path."""
    environment = {**os.environ, "TRAINWRECK_CACHE": folder + "/.cache",
                   "PATH": os.path.dirname(trainwreck) + ":" + os.environ["PATH"]}
    for name in ("TRAINWRECK_TARGET", "TEST_SRCDIR", "RUNFILES_DIR"):
        environment.pop(name, None)
    return environment


def run_commands(block, folder, environment):
    """Yields what is wrong."""
    examples = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M)
    if not examples:
        yield f"no command in:\n{block}"
    for command, expected in examples:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not matches(expected, done.stdout):
            yield f"$ {command}\nexpected:\n{expected}seen:\n{done.stdout}"


def main():
    trainwreck, document = map(os.path.abspath, sys.argv[1:3])
    least = sys.argv[3:5]
    assert matches("a ... c\n", "a b c\n") and not matches("a ... c\n", "a b d\n")
    failures, commands, files = [], 0, 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
        environment = environment_in(folder, trainwreck)
        for language, name, text in blocks_of(document):
            if name:
                files += 1
                write(folder, name, text)
            elif language == "console":
                commands += 1
                failures += run_commands(text, folder, environment)
    if files < int(least[0]) or commands < int(least[1]):
        failures.append(f"only {files} files and {commands} blocks of commands were found")
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
