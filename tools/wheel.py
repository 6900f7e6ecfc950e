#!/usr/bin/env python3
"""Packs the harness, the Python package and the portable scenarios as a wheel, or checks one (ci/wheel.sh builds and packs).

    wheel.py pack BINARY DIR     in the checkout; checks the wheel that it writes to DIR, and prints its path
    wheel.py check WHEEL         its RECORD, size and tag, and whether each library is in it or on every Linux

The tag says which C library it needs: by the newest version of a symbol that a program or library of the wheel asks for.
"""
import base64
import glob
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

MAX_BYTES = 10_000_000
# What a manylinux wheel may expect of a system (PEP 600), as far as it is needed; all else must be in the wheel.
ON_EVERY_LINUX = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libgcc_s.so.1", "libstdc++.so.6"}
# (newest version of a symbol, N of the oldest glibc 2.N beside it), as in the policies of manylinux.
BESIDE_GLIBC = {"GLIBCXX_3.4": ((28, 31), (29, 34), (30, 35), (33, 39)), "CXXABI_1.3": ((12, 31), (13, 34), (15, 39))}
HEADERS = ("libcli11-dev", "libjs-dygraphs", "nlohmann-json3-dev")  # are in the program, too; Boost's licence does not ask to come along
# In the build's output; the first is preloaded, the second loaded by Python, and neither is linked.
LOADED = ("preload/libtrainwreck_nccl.so", "python/packed/trainwreck/lib/trainwreck/libtrainwreck_kernels.so")
LIBRARIES, SCENARIOS = "trainwreck/lib/trainwreck/", "trainwreck/share/trainwreck/scenarios/portable/"
RPATH = "$ORIGIN/../lib/trainwreck"  # of the program; harness/cli/BUILD links it so
TAG = re.compile(r"-(py3-none-manylinux_2_(\d+)_x86_64)\.whl$")


def output_of(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def needs_of(path):
    """The libraries that an ELF file names, its DT_RPATH, and the N of the glibc 2.N that its symbols ask for."""
    text = output_of("readelf", "-W", "-d", "-V", path)
    minors = [int(n or 99) for n in re.findall(r"Name: GLIBC_(?:2\.(\d+))?", text)]
    for prefix, systems in BESIDE_GLIBC.items():
        for version in map(int, re.findall(rf"Name: {re.escape(prefix)}\.(\d+)", text)):
            minors.append(next((glibc for newest, glibc in systems if version <= newest), 99))
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text), re.findall(r"\(RPATH\).*\[(.*)\]", text), max(minors, default=0)


def libraries_of(binary):
    """Paths by name of what it needs, and what those need, beyond what is on every Linux."""
    lines = re.findall(r"^\s*(\S+) => (.*?)(?: \(0x\w+\))?$", output_of("ldd", binary), re.M)
    found = {name: path for name, path in lines if name not in ON_EVERY_LINUX}
    if missing := ", ".join(name for name, path in found.items() if not path.startswith("/")):
        sys.exit("wheel: these libraries are not here: " + missing)
    return found


def sources_of(checkout):
    """(name in the wheel, path here) of what is packed as it is."""
    for folder, into in (("python/trainwreck", "trainwreck/"), ("scenarios/portable", SCENARIOS)):
        for path in glob.glob(f"{checkout}/{folder}/**", recursive=True):
            if os.path.isfile(path) and "__pycache__" not in path:
                yield into + os.path.relpath(path, f"{checkout}/{folder}"), path


def programs_of(binary, folder, info):
    """(name in the wheel, path here) of programs, libraries and their licences; `folder` is for what is made here."""
    output_of("strip", "-o", folder + "/trainwreck", binary)
    yield "trainwreck/bin/trainwreck", folder + "/trainwreck"
    for library in LOADED:
        name = os.path.basename(library)
        output_of("strip", "--strip-unneeded", "-o", f"{folder}/{name}", f"{os.path.dirname(binary)}/../../{library}")
        yield LIBRARIES + name, f"{folder}/{name}"
    libraries = libraries_of(binary)
    yield from ((LIBRARIES + name, path) for name, path in libraries.items())
    owners = output_of("dpkg-query", "-S", *("*/" + name for name in libraries)) if libraries else ""
    for package in {*HEADERS, *re.findall(r"^([^:]+):", owners, re.M)}:
        yield f"{info}/licenses/{package}.txt", f"/usr/share/doc/{package}/copyright"


def texts_of(version, tag):
    yield "METADATA", (f"Metadata-Version: 2.1\nName: trainwreck\nVersion: {version}\nRequires-Python: >=3.9\n"
                       "Summary: Breaks training runs on purpose, and checks what follows\n")
    yield "WHEEL", f"Wheel-Version: 1.0\nGenerator: trainwreck tools/wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    yield "entry_points.txt", ("[console_scripts]\ntrainwreck = trainwreck.__main__:main\n"
                               "[pytest11]\ntrainwreck = trainwreck.pytest_plugin\n")


def record_of(entries, info):
    record = f"{info}/RECORD,,\n"
    for name, content in entries.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
        record += f"{name},sha256={digest.rstrip('=')},{len(content)}\n"
    return record


def pack(binary, out):
    version = output_of(binary, "--version").split()[-1]
    info = f"trainwreck-{version}.dist-info"
    entries = {}
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        paths = dict(sorted([*sources_of("."), *programs_of(binary, folder, info)]))
        newest = max(needs_of(path)[2] for name, path in paths.items() if name.startswith(("trainwreck/bin/", LIBRARIES)))
        for name, path in paths.items():
            with open(path, "rb") as file:
                entries[name] = file.read()
    tag = f"py3-none-manylinux_2_{newest}_x86_64"
    entries.update((f"{info}/{name}", text.encode()) for name, text in texts_of(version, tag))
    wheel = os.path.join(out, f"trainwreck-{version}-{tag}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {**entries, info + "/RECORD": record_of(entries, info).encode()}.items():
            entry = zipfile.ZipInfo(name)  # of a fixed date: the same files are the same wheel
            entry.external_attr = (0o100755 if name.startswith("trainwreck/bin/") else 0o100644) << 16
            file.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return wheel


def check_programs(folder, minor):
    libraries = glob.glob(f"{folder}/{LIBRARIES}*")
    for path in [folder + "/trainwreck/bin/trainwreck", *libraries]:
        name = os.path.basename(path)
        needed, rpaths, newest = needs_of(path)
        for library in set(needed) - ON_EVERY_LINUX - set(map(os.path.basename, libraries)):
            yield f"{name} needs {library}, which is neither in the wheel nor on every Linux"
        if newest > minor:
            yield f"{name} needs a system with glibc 2.{newest}, the tag says 2.{minor}"
        if path not in libraries and rpaths != [RPATH]:
            yield f"{name} looks for its libraries in {rpaths}, not in {RPATH}"


def check(wheel):
    """Yields what is wrong."""
    if (size := os.path.getsize(wheel)) > MAX_BYTES:
        yield f"{size} bytes, more than {MAX_BYTES}"
    with zipfile.ZipFile(wheel) as file, tempfile.TemporaryDirectory() as folder:
        file.extractall(folder)
        entries = {name: file.read(name) for name in file.namelist()}
        info = next(name for name in entries if name.endswith(".dist-info/RECORD")).split("/")[0]
        record = entries.pop(info + "/RECORD").decode()
        for line in sorted({*record.splitlines()} ^ {*record_of(entries, info).splitlines()}):
            yield f"RECORD does not fit the file of {line}"
        tag = TAG.search(wheel)
        if not tag or f"Tag: {tag[1]}\n".encode() not in entries[info + "/WHEEL"]:
            yield "the tag of its name is not that of WHEEL, or no py3-none-manylinux_2_N_x86_64"
        yield from check_programs(folder, int(tag[2]) if tag else 0)


def main():
    if [len(sys.argv), *sys.argv[1:2]] not in ([4, "pack"], [3, "check"]):
        sys.exit(__doc__)
    wheel = pack(*map(os.path.abspath, sys.argv[2:])) if sys.argv[1] == "pack" else sys.argv[2]
    wrong = "\n".join(f"{wheel}: {what}" for what in check(wheel))
    print(wrong or wheel)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
