#!/usr/bin/env python3
"""What the hooks tell `trainwreck init` of a program's first step: what it can promise, its ranks and loaders, the environment variables that
it reads, where it writes; and of its checkpoints.

Usage: told_test.py [unittest options], with a Python that has torch, in the output folder of the package
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position

PACKAGE = os.path.abspath("python/packed/trainwreck")
PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or shutil.which("python3")
HAS_TORCH = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode == 0
TRAIN = """
import os, random, sys
import torch
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss
torch.manual_seed(0)
def loader(inputs, labels):
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, labels), 8)
numbers, classes = torch.randn(32, 4), torch.randint(3, (32,))
def train(model=nn.Linear(4, 3), batches=loader(numbers, classes), loss=cross_entropy, make=torch.optim.Adam, draw=lambda: None, **options):
    optimizer = make(model.parameters(), lr=0.1, **options)
    for inputs, labels in batches:
        loss(model(inputs), labels).backward()
        draw()
        optimizer.step()
"""
SIGN = """
class Lion(torch.optim.SGD):  # has two betas, as Adam
    def __init__(self, parameters, lr):
        super().__init__(parameters, lr)
        self.param_groups[0].update(betas=(0.9, 0.99), eps=1e-8)
train(make=Lion)"""
ALL = {"optimizer:adam", "model:no-draws", "batches:loader", "batches:labels", "batches:numbers", "batches:classes"}  # that one rank can promise


@unittest.skipUnless(HAS_TORCH, f"{PYTHON} cannot import torch: ci/test.sh installs Debian's")
class ToldTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(self.folder + "/project/kept")

    def told(self, lines, launcher=(), **environment):
        with open(self.folder + "/project/train.py", "w", encoding="utf-8") as file:
            file.write(TRAIN + lines)
        plan = self.folder + "/plan.json"
        with open(plan, "w", encoding="utf-8") as file:
            json.dump({"faults": [], "record": []}, file)
        hooks = {"PYTHONPATH": PACKAGE + "/startup", "TRAINWRECK_ADAPTER": "python", "TRAINWRECK_TRACE": self.folder + "/project/kept",
                 "TRAINWRECK_PLAN": plan, "TRAINWRECK_ADAPTER_TELL": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run([PYTHON, *launcher, "train.py"], cwd=self.folder + "/project", env={**os.environ, **hooks, **environment}, text=True,
                              capture_output=True, check=False, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.folder + "/project/kept/rank0.jsonl", encoding="utf-8") as file:
            events = [record for record in map(json.loads, file) if record["t"] == "event"]
        shutil.rmtree(self.folder + "/project/kept")
        os.mkdir(self.folder + "/project/kept")
        self.assertEqual([event for event in events if event["event"] == "hook_failed"], [])
        self.saved = [(event["file"], event["steps_done"]) for event in events if event["event"] == "checkpoint_saved"]
        told, = (event for event in events if event["event"] == "program")
        return told

    def promises(self, call="train()"):
        return self.told(call)["promises"]

    def test_all_that_one_rank_can_promise(self):
        promises = self.promises()
        self.assertEqual(set(promises), ALL)
        self.assertEqual(promises["optimizer:adam"], "Adam, betas 0.9 and 0.999, eps 1e-08")
        self.assertEqual(promises["batches:numbers"], "inputs of float32")

    def test_what_is_no_adam(self):
        self.assertIn("optimizer:adam", self.promises("train(make=torch.optim.AdamW)"))
        self.assertIn("optimizer:adam", self.promises("class Own(torch.optim.Adam): pass\ntrain(make=Own)"))
        for lines in ("train(make=torch.optim.SGD)", "train(make=torch.optim.Adagrad)", "train(eps=0.01)",
                      "class Adam(torch.optim.SGD): pass\ntrain(make=Adam)", SIGN):
            self.assertEqual(set(self.promises(lines)), ALL - {"optimizer:adam"}, lines)

    def test_a_step_that_draws(self):
        for lines in ("train(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1)))", "train(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))",
                      "train(draw=random.random)", "train(draw=lambda: torch.rand(1))"):
            self.assertEqual(set(self.promises(lines)), ALL - {"model:no-draws"}, lines)
        # A dropout that is off, and statistics that nothing changes.
        self.assertEqual(set(self.promises("train(nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1).eval(), nn.BatchNorm1d(3).eval()))")), ALL)

    def test_batches(self):
        words = "nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(16, 3)), loader(torch.randint(5, (32, 4)), classes)"
        self.assertEqual(set(self.promises(f"train({words})")), ALL - {"batches:numbers"})
        self.assertEqual(set(self.promises("train(batches=loader(numbers, torch.randn(32, 3)), loss=mse_loss)")), ALL - {"batches:classes"})
        # Whole numbers that are no classes; numbers that are labels alone; no DataLoader.
        whole = "train(batches=loader(numbers, classes), loss=lambda out, to: mse_loss(out, to[:, None] + out.detach()))"
        self.assertEqual(set(self.promises(whole)), ALL - {"batches:classes"})
        labels = "loader(torch.randint(5, (32, 4)), torch.randn(32, 3)), loss=mse_loss"
        self.assertEqual(set(self.promises("train(nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(16, 3)), " + labels + ")")),
                         ALL - {"batches:numbers", "batches:classes"})
        self.assertEqual(set(self.promises("train(batches=[(numbers, classes)])")), {"optimizer:adam", "model:no-draws"})

    def test_batches_without_labels(self):
        lines = """
model = nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
for (inputs,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(numbers), 8):
    model(inputs).mean().backward()
    optimizer.step()
"""
        self.assertEqual(set(self.promises(lines)), ALL - {"batches:labels", "batches:classes"})

    def test_ranks_that_hold_the_whole_model(self):
        two = ("-m", "torch.distributed.run", "--nproc_per_node=2", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0",
               "--redirects=9:1", "--tee=9:1")  # of rank 9: without, 1.13 fails with newer Pythons
        begin, model = "torch.distributed.init_process_group('gloo')\n", "nn.parallel.DistributedDataParallel(nn.Linear(4, 3))"
        told = self.told(f"{begin}train({model})", two)
        self.assertEqual((told["ranks"], told["promises"]["ranks:whole-model"]), (2, "DistributedDataParallel over 2 ranks"))
        self.assertNotIn("ranks:whole-model", self.told(f"{begin}train()", two)["promises"])  # who knows

    def test_loaders_and_checkpoints(self):
        told = self.told("""
data, own = torch.utils.data.TensorDataset(numbers, classes), torch.utils.data.BatchSampler(range(32), 5, False)
every = [torch.utils.data.DataLoader(data, **options) for options in ({"batch_size": 4, "num_workers": 1}, {"batch_sampler": own},
                                                                      {"batch_sampler": [[0, 1], [2]]}, {"batch_size": 8})]
train(batches=every[1])
os.mkdir("out")
torch.save({"step": 7}, "out/last.pt")
with open("out/optimizer.pt", "wb") as file:
    torch.save({"step": 7}, file)
torch.save({}, __import__("io").BytesIO())""")
        self.assertEqual(told["loaders"], ["batches of 4, 1 worker", "batches of 5, 0 workers", "batches of 8, 0 workers",
                                           "batches of its own size, 0 workers"])
        self.assertEqual((told["ranks"], self.saved), (1, [("last.pt", 7), ("optimizer.pt", 7)]))

    def test_environment_variables(self):
        told = self.told("os.environ.get('LR'), os.getenv('STEPS', '3'), os.environ['PATH'], 'SEED' in os.environ\ntrain()")
        self.assertEqual(told["variables"], ["LR", "STEPS", "PATH", "SEED"])

    def test_where_it_writes(self):
        os.mkdir(self.folder + "/project/old")
        told = self.told("""
for folder in ("out/a/b", "old", ".cache/a", os.environ["TRAINWRECK_TRACE"] + "/mine"):
    os.makedirs(folder, exist_ok=True)
for folder in "/nowhere/a", "/nowhere/.cache", "/tmp", "/dev/shm/a/b":
    try:
        os.mkdir(folder)
    except OSError:
        pass
open("out/log.txt", "w").close()
open("log.csv", "a").close()
open("train.py").close()
open("/dev/null", "w").close()
os.close(os.open("made", os.O_WRONLY | os.O_CREAT))
train()""")
        self.assertEqual(told["writes"], ["out", "old", "/nowhere/a", "log.csv", "made"])
        self.assertEqual(self.told("train()")["writes"], [])


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
