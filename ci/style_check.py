#!/usr/bin/env python3
"""Checks the form of all sources (formatting, file and function length, names, LibTorch only where it may be), and of the
documents (prose is wrapped, links lead somewhere).

Usage: style_check.py [ROOT]; prints `file:line: what` for each finding, exit code 1 when there is any.
"""
import os
import re
import shutil
import subprocess
import sys

SOURCE_ENDINGS = (".h", ".cc", ".cu", ".cuh")
MAX_FUNCTION_LINES = 70
MAX_TEST_LINES = 120  # a table of cases is easier to read in one piece
MAX_FILE_LINES = 500
MAX_COLUMNS = 100
TORCH_FOLDERS = ("trainer/", "injectors/", "kernels/")
# Calls of the CUDA runtime go through one file, which counts those that can wait.
CUDA_CALL = re.compile(r"\bcuda[A-Z]\w*\(|<<<|#include <cuda")
# torch::nn::Module takes 9 s to compile, in each file that such a header reaches.
SLOW_INCLUDE = re.compile(r'#include (<torch/nn|<torch/torch\.h>|"trainer/models/model\.h")')
MAY_BE_SLOW = ("trainer/models/model.h", "trainer/models/layers.h", "injectors/optimizer/testing_optimizer.h")
# The rooms of the trainer, lowest first: a file includes its own room and lower ones. What lies in trainer/ itself is the
# lowest room (the parts' interfaces) or the highest (what builds and runs a loop of them).
TRAINER_ROOMS = ("recipe", "parts", "models", "checkpoints", "optimizers", "ranks", "devices", "data", "telemetry", "loop")
TRAINER_PARTS = ("parts", "events", "tensor_views", "device_health", "memory_owner", "stopwatch")
TRAINER_INCLUDE = re.compile(r'#include "(trainer/[^"]+)"')
# The reference loop knows of no faults.
FAULT_BRANCH = re.compile(r"\bif\s*\([^)]*\b(fault|inject)", re.IGNORECASE)
BAD_NAMES = re.compile(r"\b(class|struct)\s+\w*Manager\b")
# Verdicts, classes and states have types (harness/outcome/outcome.h): their names are read and written at the edges
# only. A snake_case word of that table stands in no other source of the harness.
OUTCOME_TABLE = "harness/outcome/outcome.cc"
OUTCOME_NAME = re.compile(r'\{(?:VerdictKind|FailureClass)::k\w+,[^"]*"(\w+)"')
OUTCOME_COMPARED = re.compile(r'(?:verdict|status|class|expect)\w*(?:\(\))?\s*[!=]=\s*"')
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`[^`]*`")
LIST_MARK = re.compile(r"^([-*]|\d+\.) +")
FUNCTION_START = re.compile(r"^[A-Za-z_~].*\)\s*(const\s*)?(noexcept\s*)?(override\s*)?(:\s.*)?{$")


def files_with(root, endings):
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "bazel-")))
        for name in sorted(files):
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(endings):
                yield path


def signature_at(lines, index):
    """The line, or those over which a signature is wrapped, as one."""
    end = index
    while lines[end].endswith((",", "(", ")", "const")) and end + 1 < min(len(lines), index + 8):
        end += 1
    return " ".join(line.strip() for line in lines[index:end + 1])


def trainer_room(path):
    """The place of a file's room among TRAINER_ROOMS; None for tests and what only they use."""
    folders, name = path.split("/")[1:-1], os.path.splitext(os.path.basename(path))[0]
    if not folders:
        room = "parts" if name in TRAINER_PARTS else "loop"
    else:
        room = folders[0]
    is_test = re.search("test|benchmark", name) or room not in TRAINER_ROOMS
    return None if is_test else TRAINER_ROOMS.index(room)


def check_arrow(path, line):
    included = TRAINER_INCLUDE.match(line)
    if not included or not path.startswith("trainer/"):
        return
    room, lower = trainer_room(path), trainer_room(included[1])
    if room is not None and (lower is None or lower > room):
        yield f"{TRAINER_ROOMS[room]} lies below the room of {included[1]}"


def check_text(path, text):
    lines = text.split("\n")
    if path.endswith(".h") and "#pragma once" not in text:
        yield 1, "a header without #pragma once"
    if path.endswith(".h") and not text.startswith("//"):
        yield 1, "a header opens with what it holds and when to use it"
    if (count := text.count("\n")) > MAX_FILE_LINES:
        yield count, f"{count} lines: the file holds two ideas"
    if any(part in ("utils", "util", "helpers", "misc") for part in re.split(r"[/._]", path)):
        yield 1, "a file named after nothing in particular"
    start = None
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS and "http" not in line and 'R"' not in line and '"' not in line:
            yield number, f"longer than {MAX_COLUMNS} columns"
        if line.rstrip() != line:
            yield number, "white space at the end"
        if BAD_NAMES.search(line):
            yield number, "a class named Manager"
        if not path.startswith(TORCH_FOLDERS) and re.search(r'#include <(torch|ATen|c10)/', line):
            yield number, "LibTorch is only for trainer, injectors and kernels"
        if path.endswith(".h") and path not in MAY_BE_SLOW and SLOW_INCLUDE.search(line):
            yield number, "a header that is slow to compile: declare Model, and include its header in the .cc"
        if path.startswith("kernels/") and path != "kernels/cuda_calls.cu" and CUDA_CALL.search(line):
            yield number, "the kernels call the CUDA runtime through cuda_calls.h only"
        for what in check_arrow(path, line):
            yield number, what
        if path.startswith("trainer/") and not path.endswith("_test.cc"):
            if FAULT_BRANCH.search(line):
                yield number, "the reference loop has no branch on faults"
            if '#include "injectors/' in line and not path.endswith("main.cc"):
                yield number, "only main.cc may know of injectors"
        if line[:1].strip() and FUNCTION_START.match(signature_at(lines, number - 1)):
            start = number
        elif line == "}" and start is not None:
            limit = MAX_TEST_LINES if "_test." in path else MAX_FUNCTION_LINES
            if number - start + 1 > limit:
                yield start, f"a function of {number - start + 1} lines"
            start = None


NAMESPACE = re.compile(r"namespace(?: ([\w:]+))? {$")
TYPE = re.compile(r"(?:class|struct|union|enum(?: class)?) (\w+)(?: final)?(?: : .*)?(?: {.*)?$")


def check_names(texts):
    """Two types of one name in one namespace are one to the linker: which one runs is a matter of luck."""
    places = {}
    for path, text in texts.items():
        spaces = []
        for number, line in enumerate(text.split("\n"), 1):
            if space := NAMESPACE.match(line):
                spaces.append(space[1] or f"anonymous of {path}")
            elif line.startswith("}  // namespace") and spaces:
                spaces.pop()
            elif (name := TYPE.match(line)) and "{" in line:
                places.setdefault(("::".join(spaces), name[1]), []).append((path, number))
    for (space, name), found in places.items():
        for path, number in found[1:]:
            if path != found[0][0]:
                yield path, number, f"{space}::{name} is also a type of {found[0][0]}"


def check_outcomes(texts):
    names = OUTCOME_NAME.findall(texts.get(OUTCOME_TABLE, ""))
    literal = re.compile("|".join(f'"{name}"' for name in names if "_" in name) or r"(?!)")
    compared = re.compile(r'[!=]=\s*"(?:inconclusive|undecided)"')
    for path, text in texts.items():
        if not path.startswith("harness/") or path == OUTCOME_TABLE or "test" in path:
            continue
        for number, line in enumerate(text.split("\n"), 1):
            code = line.partition("//")[0]
            if literal.search(code) or compared.search(code) or OUTCOME_COMPARED.search(code):
                yield path, number, "an outcome by its name: harness/outcome/outcome.h has a type for it"


def check_width(lines):
    """Tables, headings, code and what no space divides may be wider."""
    for number, line in lines:
        if line.startswith(("|", "#", "    ")):
            continue
        line = LINK.sub("]()", line)
        words = LIST_MARK.sub("", CODE.sub("`", line).strip())
        if len(line) > MAX_COLUMNS and " " in words:
            yield number, f"prose that is not wrapped at {MAX_COLUMNS} columns"


def anchors(path):
    """The names of the headings, as GitHub makes them."""
    with open(path, encoding="utf-8") as file:
        headings = [line.lstrip("#") for line in file if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def check_links(root, path, lines):
    for number, line in lines:
        for link in LINK.findall(line):
            if link.startswith("http"):
                continue
            name, _, anchor = link.partition("#")
            target = os.path.join(root, os.path.dirname(path), name) if name else os.path.join(root, path)
            if not os.path.exists(target):
                yield number, f"a link to {name}, which is not there"
            elif anchor and anchor not in anchors(target):
                yield number, f"a link to a heading that is not there: {link}"


def check_document(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    lines, is_code = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code:
            lines.append((number, line))
    yield from check_links(root, path, lines)
    yield from check_width(lines)


def check_rooms(root):
    """The table of ARCHITECTURE.md has the rooms of harness/BUILD, in the same order."""
    with open(os.path.join(root, "harness/BUILD"), encoding="utf-8") as file:
        rooms = re.findall(r'^    "(\w+)",$', file.read().partition("ROOMS = [")[2].partition("]")[0], re.M)
    with open(os.path.join(root, "ARCHITECTURE.md"), encoding="utf-8") as file:
        table = re.findall(r"^\| harness/(\w+) \|", file.read(), re.M)
    if rooms != table:
        yield "ARCHITECTURE.md", 1, f"its table has the rooms {' '.join(table)}; harness/BUILD has {' '.join(rooms)}"


def check_format(root, paths):
    tool = shutil.which("clang-format")
    if tool is None:
        print("SKIPPED formatting: clang-format is not installed")
        return
    result = subprocess.run([tool, "--dry-run", "-Werror", *paths], cwd=root, capture_output=True,
                            text=True, check=False)
    for line in result.stderr.split("\n"):
        match = re.match(r"(.*?):(\d+):\d+: error: ", line)
        if match:
            yield match[1], int(match[2]), "not as clang-format writes it"


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
    paths = list(files_with(root, SOURCE_ENDINGS))
    documents = [path for path in files_with(root, (".md",)) if "/testdata/" not in path]
    if not paths:
        print(f"no sources under {root}")
        return 1
    findings = list(check_format(root, paths))
    texts = {}
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            texts[path] = file.read()
        findings += [(path, line, what) for line, what in check_text(path, texts[path])]
    findings += check_names(texts)
    findings += check_outcomes(texts)
    findings += check_rooms(root)
    for path in documents:
        findings += [(path, line, what) for line, what in check_document(root, path)]
    for path, line, what in findings:
        print(f"{path}:{line}: {what}")
    print(f"{len(paths) + len(documents)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
