"""The machine that gpu_check.py runs on: its torch, its GPUs, and whether its libraries fit the programs of the bundle."""
import ctypes
import ctypes.util
import glob
import json
import os
import platform
import re
import shutil
import subprocess

NODES = ("/dev/nvidia[0-9]*", "/dev/dxg", "/proc/driver/nvidia/gpus/*")


class NoTorch(Exception):
    """There is no LibTorch to run the programs with."""


def find_torch(python):
    """The folder of LibTorch's libraries, and those of the libraries that they need. Raises NoTorch."""
    if python is None and os.environ.get("TORCH_HOME"):
        home = os.environ["TORCH_HOME"]
        return home + "/lib", glob.glob("/usr/local/cuda/lib64")
    code = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    try:
        torch = subprocess.run([python or "python3", "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoTorch("no torch: set TORCH_HOME, or name a Python that has it with --python") from error
    return torch + "/lib", glob.glob(torch + "/../nvidia/*/lib") + glob.glob("/usr/local/cuda/lib64")


def python_with_torch(python):
    """The Python whose torch find_torch takes; "" where that is of no Python."""
    return "" if python is None and os.environ.get("TORCH_HOME") else python or "python3"


def library_path(bundle, torch, others):
    """The machine's own folders stay, behind ours: its driver may be found by them alone."""
    own = os.environ.get("LD_LIBRARY_PATH", "")
    return ":".join([bundle + "/lib", torch, *others] + ([own] if own else []))


def gpu_nodes(patterns=NODES):
    """What the kernel shows of GPUs, whether or not CUDA can use them."""
    return sorted(path for pattern in patterns for path in glob.glob(pattern))


def torch_version(torch):
    """Of a Python package, else of the headers; "" when neither is there."""
    files = {torch + "/../version.py": r"__version__ = '([^']+)",
             torch + "/../include/torch/headeronly/version.h": r"define TORCH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)"}
    for path, pattern in files.items():
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return ".".join(re.findall(pattern, file.read()))
    return ""


def nccl_version(folders):
    """Of the first libnccl.so.2 in these folders that can be loaded; "" when there is none."""
    for folder in folders:
        for path in glob.glob(folder + "/libnccl.so.2"):
            number = ctypes.c_int()
            try:
                ctypes.CDLL(path).ncclGetVersion(ctypes.byref(number))
            except (OSError, AttributeError):
                continue
            return f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"
    return ""


def libstdcxx_version():
    """The newest GLIBCXX version of the machine's libstdc++; "" when there is none."""
    listed = subprocess.run([shutil.which("ldconfig") or "/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    for path in re.findall(r"libstdc\+\+\.so\.6 .*=> (\S+)", listed):
        with open(path, "rb") as file:
            return newest(re.findall(rb"GLIBCXX_([\d.]+)\0", file.read()))
    return ""


def newest(versions):
    texts = [version.decode() if isinstance(version, bytes) else version for version in versions]
    return max(texts, key=parts, default="")


def parts(version):
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0]))


def what_does_not_fit(built, here):
    """Lines. C++ code needs the LibTorch that it was built against; the others only have to be as new. What is not known is no
    difference: the first program says it."""
    lines = []
    for name in sorted(built):
        need, have = built[name], here.get(name, "")
        if not need or not have:
            continue
        if name == "LibTorch" and parts(need)[:2] != parts(have)[:2]:
            lines.append(f"{name} {have}: the programs were built against {need}, and fit no other minor version")
        elif name != "LibTorch" and parts(have) < parts(need):
            lines.append(f"{name} {have}: the programs need {need} or newer")
    return lines


def versions(torch, others):
    return {"LibTorch": torch_version(torch), "NCCL": nccl_version([torch, *others]),
            "glibc": platform.libc_ver()[1], "libstdc++": libstdcxx_version()}


def built_against(bundle):
    """What gpu_bundle.py noted; empty for bundles of older versions."""
    path = bundle + "/BUILT.json"
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^model name\s*: (.+)$", file.read(), re.MULTILINE)
    return found[1] if found else platform.machine()
