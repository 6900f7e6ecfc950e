"""Each start logs into a folder of its own, and saves a checkpoint every ten steps, as frameworks do."""
import argparse
import glob
import os

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
parser.add_argument("--folder")
parser.add_argument("--resume", default="")
options = parser.parse_args()
first = int(options.resume.rpartition("-")[2]) if options.resume else 0
logs = f"{options.folder}/version_{len(glob.glob(options.folder + '/version_*'))}"
os.makedirs(logs)
with open(logs + "/metrics.csv", "w", encoding="utf-8") as file:
    file.write("step,loss\n")
    for step in range(first, options.steps):
        file.write(f"{step},{0.9 ** step + float(os.environ.get('BAD_LUCK', 0))}\n")
        if (step + 1) % 10 == 0:
            os.makedirs(f"{options.folder}/checkpoint-{step + 1}", exist_ok=True)
