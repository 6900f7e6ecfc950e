#!/usr/bin/env python3
"""Makes the pictures of docs/guide/report.md: runs the commands of its block `sh pictures`, in an empty folder, and
photographs the pages in a headless Chromium.

Usage: doc_pictures.py TRAINWRECK TRAINER [PICTURE...]
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT + "/tests")
import browser  # noqa: E402

GUIDE = ROOT + "/docs/guide"
MOST_BYTES = 150_000

OPEN_CASE = "const c = document.querySelector('.case[data-name^=\"%s\"]'); c.open = true; c.scrollIntoView()"
SECTION = "document.getElementById('h-%s').scrollIntoView()"

# A picture: its name, the page, what is done before it is taken, the height of the window, whether it is dark.
PICTURES = [
    ("first-screen", "after/report.html", "", 660, False),
    ("failing-case", "after/report.html", OPEN_CASE % "nan/corrupt-sample", 760, False),
    ("hang", "before/report.html", OPEN_CASE % "hang/collective-reordered" + "; setTimeout(() => c.querySelector('.ranks').parentNode"
     ".parentNode.scrollIntoView({block: 'center'}), 500)", 560, True),
    ("compare", "compare.html", OPEN_CASE % "nan/corrupt-sample" + "; setTimeout(() => { const s = c.querySelectorAll('.tools select')[1];"
     "s.value = '0'; s.dispatchEvent(new Event('change')); }, 500)", 860, False),
    ("matrix", "table/matrix.html", SECTION % "Symptoms-over-faults", 700, False),
    ("lr-range", "rates.html", "", 740, True),
]


def commands():
    with open(GUIDE + "/report.md", encoding="utf-8") as file:
        block = re.search(r"^```sh\n# pictures\n(.*?)^```$", file.read(), re.M | re.S)
    return block.group(1)


def run(folder, trainwreck, trainer):
    bin_folder = folder + "/bin"
    os.makedirs(bin_folder)
    os.symlink(os.path.abspath(trainwreck), bin_folder + "/trainwreck")
    environment = dict(os.environ, PATH=bin_folder + ":" + os.environ["PATH"], TRAINWRECK_TARGET=os.path.abspath(trainer),
                       TRAINWRECK_CACHE=folder + "/cache")
    os.symlink(ROOT + "/scenarios", folder + "/scenarios")
    subprocess.run(["bash", "-xc", commands()], cwd=folder, env=environment, check=False)


def take(folder, name, page, before, height, dark):
    place = tempfile.mkdtemp(dir=folder)
    window = browser.Browser(place, width=1000, height=height, dark=dark)
    try:
        window.open(f"{folder}/{page}")
        window.wait("return document.readyState === 'complete'")
        window.run(before)
        window.run("return new Promise((done) => setTimeout(done, 1500))")  # charts are drawn when they come into view
        path = f"{GUIDE}/pictures/{name}.png"
        window.screenshot(path)
    finally:
        window.close()
    size = os.path.getsize(path)
    print(f"{path}: {size} bytes")
    if size > MOST_BYTES:
        sys.exit(f"{path} is larger than {MOST_BYTES} bytes")


def main():
    wanted = sys.argv[3:]
    if browser.missing():
        sys.exit(browser.missing())
    os.makedirs(GUIDE + "/pictures", exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        run(folder, *sys.argv[1:3])
        for picture in PICTURES:
            if not wanted or picture[0] in wanted:
                take(folder, *picture)


if __name__ == "__main__":
    main()
