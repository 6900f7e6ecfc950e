#!/usr/bin/env python3
"""Packs programs, the libraries of theirs that a bare machine lacks, and the scenarios: see gpu_bundle.sh.

    gpu_bundle.py OUT.tar.gz --commit NAME --scenarios FOLDER --shim LIBRARY [--torch VERSION] [--nccl VERSION] PROGRAM...

BUILT.json says what the programs were built against, for gpu_check.py to compare with.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from gpu_machine import newest

MOST_BYTES = 64 << 20  # unpacked, what can be carried to such a machine
FOLDER = "trainwreck-gpu"
# What every Linux has, and what LibTorch brings: never packed.
EVERYWHERE = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|util|gcc_s|stdc\+\+|gomp))\.so")
OF_TORCH = re.compile(r"lib(torch|c10|cu|nv|nccl)")
SHIM_FOLDER = "lib/trainwreck"  # where the program trainwreck looks for it
HERE = os.path.dirname(os.path.abspath(__file__))
CHECK = ("gpu_check.sh", "gpu_check.py", "gpu_machine.py", "gpu_report.py")


def libraries_of(program):
    """Paths of the libraries that travel with it. Those that LibTorch itself loads are not looked at."""
    found = []
    headers = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", headers)
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for name in needed:
        if EVERYWHERE.match(name) or OF_TORCH.match(name):
            continue
        path = re.search(rf"^\s*{re.escape(name)} => (/\S+)", listed, re.MULTILINE)
        if path is None:
            sys.exit(f"gpu_bundle: {program} needs {name}, which is not here")
        found += [path[1]] + libraries_of(path[1])
    return found


def newest_needed(programs, prefix):
    """The newest version of a symbol, as GLIBC_2.34, that the programs need."""
    found = set()
    for program in programs:
        symbols = subprocess.run(["readelf", "-V", "--wide", program], check=True, capture_output=True, text=True).stdout
        found |= set(re.findall(rf"Name: {prefix}_([\d.]+)", symbols))
    return newest(found)


def copy_stripped(path, folder):
    target = os.path.join(folder, os.path.basename(path))
    shutil.copyfile(os.path.realpath(path), target)
    os.chmod(target, 0o755)
    subprocess.run(["strip", "--strip-unneeded", target], check=True)
    return os.path.getsize(target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--scenarios", required=True)
    parser.add_argument("--shim", required=True, help="the library that breaks NCCL's calls")
    parser.add_argument("--torch", default="", help="LibTorch's version")
    parser.add_argument("--nccl", default="", help="NCCL's version")
    parser.add_argument("--most-bytes", type=int, default=MOST_BYTES)
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.join(scratch, FOLDER)
        for name in ("bin", "lib", SHIM_FOLDER):
            os.makedirs(os.path.join(root, name))
        libraries = {path for program in options.programs for path in libraries_of(program)}
        total = 0
        for folder, paths in (("bin", options.programs), ("lib", sorted(libraries)), (SHIM_FOLDER, [options.shim])):
            for path in paths:
                size = copy_stripped(path, os.path.join(root, folder))
                print(f"{size / 2**20:8.2f} MiB  {folder}/{os.path.basename(path)}")
                total += size
        shutil.copytree(options.scenarios, os.path.join(root, "scenarios"),
                        ignore=lambda folder, names: [n for n in names if not n.endswith(".yaml")
                                                      and not os.path.isdir(os.path.join(folder, n))])
        shutil.copytree(os.path.join(HERE, "gpu_nccl"), os.path.join(root, "nccl"))
        for name in CHECK:
            shutil.copy(os.path.join(HERE, name), root)
        with open(os.path.join(root, "BUILT.json"), "w", encoding="utf-8") as file:
            needed = [*options.programs, *libraries, options.shim]
            json.dump({"LibTorch": options.torch, "NCCL": options.nccl, "glibc": newest_needed(needed, "GLIBC"),
                       "libstdc++": newest_needed(needed, "GLIBCXX")}, file)
        with open(os.path.join(root, "COMMIT"), "w", encoding="utf-8") as file:
            file.write(options.commit + "\n")
        print(f"{total / 2**20:8.2f} MiB  in all, of {options.most_bytes / 2**20:.0f}")
        if total > options.most_bytes:
            sys.exit("gpu_bundle: too large to carry")
        with tarfile.open(options.out, "w:gz") as archive:
            archive.add(root, FOLDER)
    print(f"{os.path.getsize(options.out) / 2**20:8.2f} MiB  {options.out}")


if __name__ == "__main__":
    main()
