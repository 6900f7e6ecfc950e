"""A training program that knows nothing of trainwreck: gradient descent on a parabola, with the habits of real ones."""
import argparse
import json
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--habit", default="none")
parser.add_argument("--pace", type=float, default=0)
parser.add_argument("--logs", default="")
parser.add_argument("--data", default="")
parser.add_argument("--save", default="")
parser.add_argument("--load", default="")
options = parser.parse_args()


def leave_a_process():
    """One that no process group and no parent tells about."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(3):
                os.close(fd)
            time.sleep(600)
        os._exit(0)


def data():
    if not options.data:
        return 1.0
    with open(os.path.join(options.data, "numbers.txt"), encoding="utf-8") as file:
        numbers = [float(line) for line in file if line.strip()]
    return sum(numbers) / len(numbers)


print("unbuffered:", os.environ.get("PYTHONUNBUFFERED"))
first, weight = 0, 4.0
if options.load:
    with open(options.load, encoding="utf-8") as file:
        try:
            saved = json.load(file)
            first, weight = saved["step"], saved["weight"]
        except ValueError:
            print("the checkpoint is damaged: from the beginning", flush=True)
target = data()
for step in range(first, options.steps):
    loss = (weight - target) * (weight - target) + 0.01 + float(os.environ.get("BAD_LUCK", "0"))
    weight -= options.lr * 2 * (weight - target)
    shown = loss
    if options.habit in ("nan", "hides_nan") and step >= 10:
        shown = float("nan") if options.habit == "nan" else 0.0
    if options.habit == "babbles":
        shown = "about " + str(loss)
    if options.habit == "fails" and step == 20:
        raise SystemExit(3)
    if int(os.environ.get("RANK", "0")) == 0:
        print(f"[{step}] loss={shown}")
        if options.logs:
            with open(options.logs + "/log.csv", "a", encoding="utf-8") as file:
                if file.tell() == 0:
                    file.write("epoch,weight\n")
                file.write(f"{step},{weight}\n")
            with open(options.logs + "/log.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps({"step": step, "eval": {"error": loss if step % 5 == 0 else None}}) + "\n")
    if options.save and (step + 1) % 5 == 0:
        partial = f"{options.save}/next-{os.getpid()}.json"  # ranks save into one folder
        with open(partial, "w", encoding="utf-8") as file:
            json.dump({"step": step + 1, "weight": weight}, file)
        os.replace(partial, options.save + "/last.json")
    time.sleep(options.pace)
if options.habit == "leaves":
    leave_a_process()
