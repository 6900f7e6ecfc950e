"""The results of gpu_check.py: kept in a file, so that several calls make one report."""
import hashlib
import json
import os
import textwrap

PASSED, PARTLY, FAILED, ABSENT = "passed", "PARTLY", "FAILED", "NOT VERIFIED"


def mark_of(text):
    return f"<!-- gpu_check.py wrote all above this line: {hashlib.sha256(text.encode()).hexdigest()[:16]} -->\n"


def write_report(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + mark_of(text))


def may_replace(path):
    """Whether nobody has added to this report by hand."""
    if not os.path.exists(path):
        return True
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    end = text.rfind("<!--")
    return not text or (end > 0 and text[end:] == mark_of(text[:end]))


def grouped(lines):
    """Lines "what: name: why" of the same check and reason as one: "what: why: names"."""
    groups = {}
    for line in lines:
        what, _, rest = line.partition(": ")
        name, _, why = rest.partition(": ")
        if not why or " " in name:
            groups[line] = None
        else:
            groups.setdefault((what, why), []).append(name)
    return [f"{key[0]}: {key[1]} ({len(names)}): {', '.join(names)}" if names and len(names) > 1
            else f"{key[0]}: {names[0]}: {key[1]}" if names else key for key, names in groups.items()]


def may_take_place(new, old):
    """Whether a unit may replace what an earlier call found. `settled` of a unit is None when all of it ended by itself."""
    found = [{row[1] for row in unit["rows"]} for unit in (new, old or {"rows": []})]
    if FAILED in found[0] or found[1] <= {ABSENT}:
        return True
    if found[0] <= {ABSENT}:
        return False
    return new["settled"] is None or (FAILED not in found[1] and old["settled"] is not None and new["settled"] >= old["settled"])


class Results:
    """By unit, in the order of `units`: a unit that is run again replaces what it said before, if it says more."""

    def __init__(self, path, units, commit):
        self.path, self.units, self.commit = path, units, commit
        self.done = {}
        self.unit = self.name = None  # that was begun
        self.verified = 0  # checks of this call that passed on a GPU, at least in part
        self.device = self.kept_device = None
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            if kept["commit"] == commit:  # the results of another commit say nothing about this one
                self.done, self.kept_device = kept["units"], kept["device"]

    def keep_of(self, device):
        """From here on `device` is checked. What an earlier call found on another is forgotten."""
        self.device = device
        if self.kept_device != device:
            self.done = {}

    def begin(self, unit):
        self.name, self.unit = unit, {"rows": [], "sections": [], "not_verified": [], "settled": None}

    def was_cut_short(self, settled):
        """`settled`: tests or cases that passed before."""
        self.unit["settled"] = (self.unit["settled"] or 0) + settled

    def finish(self):
        """What the begun unit found stands from here on, unless an earlier call knew more."""
        if may_take_place(self.unit, self.done.get(self.name)):
            self.done[self.name] = self.unit
        else:
            print(f"{self.name}: an earlier call found more, and that stands")

    def has_rows(self, unit):
        return bool(self.done.get(unit, {}).get("rows"))

    def record(self, what, status, seconds, words, on_gpu=True):
        """`on_gpu`: whether a pass of it says anything about a GPU."""
        print(f"{status:12s} {seconds:7.1f} s  {what}: {words}", flush=True)
        self.unit["rows"].append([what, status, seconds, words, on_gpu and self.device == "cuda"])
        self.verified += status in (PASSED, PARTLY) and on_gpu and self.device == "cuda"

    def lacks(self, what, why):
        self.unit["not_verified"].append(f"{what}: {why}")
        self.record(what, ABSENT, 0.0, why)

    def also_lacks(self, line):
        self.unit["not_verified"].append(line)

    def keep(self, title, text, lines=200):
        kept = text.rstrip().splitlines()
        if len(kept) > lines:
            kept = kept[:lines // 2] + [f"... {len(kept) - lines} lines ..."] + kept[-lines // 2:]
        self.unit["sections"].append([title, "\n".join(kept)])

    def store(self):
        if not self.path:
            return
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump({"commit": self.commit, "device": self.device, "units": self.done}, file, indent=1)
        os.replace(self.path + ".new", self.path)

    def all(self, kind):
        return [item for unit in self.units if unit in self.done for item in self.done[unit][kind]]

    def not_verified(self):
        left = [f"{unit}: not run yet" for unit in self.units if unit not in self.done]
        return list(dict.fromkeys(self.all("not_verified") + left))

    def count(self, *statuses):
        return sum(row[1] in statuses for row in self.all("rows"))

    def text(self, machine, device, bundle):
        text = ["# What was checked on a GPU", "",
                f"Written by `ci/gpu_check.sh` from a bundle of `ci/gpu_bundle.sh`, at commit `{self.commit}`. It says",
                "nothing of later commits.", ""]
        if device == "cpu":
            text += ["**Nothing yet: the machine of this report has no GPU.** The code for GPUs compiles, links and was",
                     "run on the CPU as far as possible. The list below says what nobody has verified.", ""]
        text += ["| | |", "|---|---|"] + [f"| {key} | {value} |" for key, value in machine] + [""]
        text += ["| check | result | seconds | |", "|---|---|---|---|"]
        text += [f"| {what} | {status} | {seconds:.1f} | {words.replace('|', '/')} |"
                 for what, status, seconds, words, _ in self.all("rows")] + [""]
        if self.not_verified():
            text += ["## Not verified"] + [
                textwrap.fill(f"- {line}", width=100, subsequent_indent="  ", break_on_hyphens=False)
                for line in grouped(self.not_verified())] + [""]
        for title, output in self.all("sections"):
            text += [f"## {title}", "```", output.replace("```", "'''").replace(bundle, "."), "```", ""]
        return "\n".join(text)
