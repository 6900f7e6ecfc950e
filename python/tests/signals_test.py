#!/usr/bin/env python3
"""What a healthy program hardly ever shows: signals that are left out where they are not known, and counts above 0.

Usage: signals_test.py [unittest options], as hooks_test.py
"""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position
from hooks_test import PROGRAMS, PYTHON, HooksTest, needs_torch  # pylint: disable=wrong-import-position

HAS_NUMPY = subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True, check=False).returncode == 0
BEGIN = f"import sys\nsys.path.insert(0, {os.path.dirname(PROGRAMS)!r})\nfrom programs import *\ntorch.set_num_threads(1)\n"

LOSSES = """
model, data = make_model(), batches()
optimizer = SGD(model.parameters(), lr=0.05)
backward, two = torch.autograd.backward, torch.tensor(2.0)

def twice(a, b):
    a.backward(retain_graph=True)
    b.backward(two)

calls = {
    "plain": lambda a, b: a.backward(),
    "two roots": lambda a, b: backward([a, b]),
    "no gradients": lambda a, b: backward([a, b], [None, None]),
    "gradient": lambda a, b: a.backward(two),
    "gradient of a list": lambda a, b: backward([a, b], [None, two]),
    "gradient once": twice,
    "row of one": lambda a, b: a.view(1).backward(),
    "row": lambda a, b: backward(torch.stack([a, b]), torch.ones(2)),
}
sums = {"plain": 1, "two roots": 2, "no gradients": 2}
for step, name in enumerate([one for name in calls for one in (name, "plain")]):
    optimizer.zero_grad()
    loss = loss_of(model, next(data))
    calls[name](loss, loss * 1)
    known = {"loss": loss.item() * sums[name]} if name in sums else {}
    say(step=step, lr=0.05, **known)
    optimizer.step()
"""

RESUMED = """
torch.manual_seed(3)
model, loader = make_model(), DataLoader(TensorDataset(torch.randn(16, 8), torch.randn(16, 1)), 8)
optimizer = SGD(model.parameters(), lr=0.05)
begin = 0
if os.path.exists(sys.argv[1]):
    begin = torch.load(sys.argv[1])["step"]
for epoch in range(begin // 2, begin // 2 + 2):
    for step, batch in enumerate(loader, 2 * epoch):
        loss = loss_of(model, batch)
        loss.backward()
        say(step=step, loss=loss.item(), lr=0.05, **({} if begin else {"epoch": epoch}))
        optimizer.step()
torch.save({"step": 4, "model": model.state_dict()}, sys.argv[1])
"""

# Of each step: the rate, the factor of each parameter's gradient, which ones the optimizer leaves out, and which ones are frozen, with a
# gradient that is kept. All parameters are ones again before.
UNTRAINED = """
class Lazy(SGD):
    def step(self, closure=None):
        for i in self.left_out:
            own[i].grad = None
        super().step()

own = [nn.Parameter(torch.ones(size)) for size in (2, 3, 5)]
optimizer = Lazy(own, lr=1.0, weight_decay=0.5)
for step, (rate, factors, left_out, frozen) in enumerate(json.loads(sys.argv[1])):
    optimizer.left_out, optimizer.param_groups[0]["lr"] = left_out, rate
    for i, p in enumerate(own):
        p.data.fill_(1.0)
        p.requires_grad_(i not in frozen)
        p.grad = torch.full_like(p, float(i in frozen))
    sum(factor * p.sum() for factor, p in zip(factors, own) if p.requires_grad).backward()
    optimizer.step()
"""

# Infinities in activations, a NaN in gradients and in parameters. `Clean` lets the loss and the gradients be finite all the same.
NONFINITE = """
class Spoil(nn.Module):
    def forward(self, inputs):
        if not self.training or not self.count:
            return inputs
        mask = (torch.arange(inputs.numel()) < self.count).view_as(inputs)
        return inputs.masked_fill(mask, float("inf"))

class Clean(nn.Module):
    def forward(self, inputs):
        return inputs.nan_to_num(posinf=1.0, neginf=1.0) if self.is_on else inputs

class Mend(SGD):
    def step(self, closure=None):
        super().step()
        if self.mends:
            for p in model.parameters():
                p.data.nan_to_num_()

def spoil(gradient):
    gradient = gradient.clone()
    gradient.view(-1)[: spoiled[gradient.shape]] = float("nan")
    return gradient

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 3), Spoil(), Clean(), nn.Linear(3, 2), Spoil(), Clean())
optimizer = Mend(model.parameters(), lr=0.01)
spoiled = dict.fromkeys([p.shape for p in model.parameters()], 0)
for p in model.parameters():
    p.register_hook(spoil)
for step in range(5):
    model[1].count, model[4].count = {1: (2, 3), 4: (2, 0)}.get(step, (0, 0))
    model[2].is_on = model[5].is_on = step != 4
    optimizer.mends = step in (0, 3)
    spoiled.update({model[0].weight.shape: 2 * (step == 2), model[3].bias.shape: step == 2})
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    if step == 0:
        model[3].bias.data[0] = float("nan")
    optimizer.step()
"""
PARAMETERS = ("0.weight", "0.bias", "3.weight", "3.bias")
FAMILIES = {"act": ("0", "1", "2", "3", "4", "5", "Sequential"), "grad": PARAMETERS, "param": PARAMETERS, "update": PARAMETERS,
            "initial": PARAMETERS}

DRAWS = """
import numpy
cuda = torch.cuda
devices = [torch.Generator().manual_seed(seed) for seed in (1, 2)]  # that stand in for those of devices
cuda.is_available = cuda.is_initialized = lambda: True
cuda.get_rng_state_all = lambda: [one.get_state() for one in devices]
weight = nn.Parameter(torch.ones(2))
optimizer = SGD([weight], lr=0.05)
draws = {1: numpy.random.random, 2: random.random, 3: lambda: torch.rand(1), 4: lambda: torch.rand(1, generator=devices[1]),
         5: numpy.random.random}
for step in range(7):
    weight.sum().backward()
    draws.get(step, lambda: None)()
    optimizer.step()
"""

# One rank is enough: what counts is where the tensor is, as it says.
ON_A_DEVICE = """
dist = torch.distributed
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
weight = nn.Parameter(torch.ones(2))
optimizer = SGD([weight], lr=0.05)
for step in range(5):
    weight.sum().backward()
    dist.all_reduce(OnDevice(torch.ones(2), requires_grad=False) if step == 2 else torch.ones(2))
    optimizer.step()
os._exit(0)
"""


@needs_torch
class SignalsTest(HooksTest):
    def steps(self, text, *arguments, **options):
        """The steps of a program that is given as text, and what it said of them."""
        said = self.call("-c", BEGIN + text, *arguments, **{"demand": (), **options})
        self.assertEqual(self.events("hook_failed"), [])
        return self.records(), said

    def test_a_loss_that_is_not_known(self):
        steps, said = self.steps(LOSSES)
        self.assert_seen(said)
        self.assertEqual(["loss" in step for step in steps], 6 * [True] + 5 * [False, True])

    def test_the_epoch_of_a_run_that_goes_on(self):
        checkpoint = self.folder + "/last.pt"
        _, first = self.steps(RESUMED, checkpoint, record=["epoch"])
        saved, = self.events("checkpoint_saved")
        self.assertEqual((saved["file"], saved["steps_done"], saved["entries"]), ("last.pt", 4, 5))
        _, second = self.steps(RESUMED, checkpoint, record=["epoch"])
        steps = self.assert_seen(first + second)
        self.assertEqual([step.get("epoch") for step in steps], [0, 0, 1, 1] + 4 * [None])

    def test_parameters_that_are_not_trained_and_those_that_should_not_be(self):
        ones = [1, 1, 1]
        expected = {"untrained": [0, 1, 2, 1, None, 0, 0, 0], "frozen_moved": [0, 0, 0, 0, 0, 1, 2, 0], "updated": [10, 8, 3, 5, 0, 10, 10, 8]}
        plan = [(1, ones, [], []), (1, ones, [0], []), (1, ones, [0, 2], []),
                (1, [1.1e-5, 0.9e-5, 1], [0, 1], []), (0, ones, [], []),  # one gradient is too small to move it
                (1, ones, [], [0]), (1, ones, [], [0, 1]), (1, ones, [0], [0])]
        steps, _ = self.steps(UNTRAINED, json.dumps(plan), record=["untrained"])
        self.assertEqual({name: [step.get(name) for step in steps] for name in expected}, expected)

    def test_numbers_that_are_not_finite(self):
        names = [f"{family}_nonfinite" for family in FAMILIES]
        steps, _ = self.steps(NONFINITE, record=[*names, *(name + "{*}" for name in names), "first_nonfinite"])
        spoiled = {"": 3, "{0.weight}": 2, "{3.bias}": 1}
        of_gradients = {"": 13, "{0.weight}": 4, "{0.bias}": 1, "{3.weight}": 6, "{3.bias}": 2}  # the sample with infinities
        expected = [
            {"initial": {"": 1, "{3.bias}": 1}, "update": {"": 1, "{3.bias}": 1}},
            {"act": {"": 5, "{1}": 2, "{4}": 3}},
            {"grad": spoiled, "param": spoiled, "update": spoiled},
            {"act": {"": 32, "{0}": 8, "{1}": 8, "{3}": 8, "{4}": 8}, "update": spoiled},
            {"act": {"": 10, "{1}": 2, "{2}": 2, "{3}": 2, "{4}": 2, "{5}": 2, "{Sequential}": 2},
             **dict.fromkeys(("grad", "param", "update"), of_gradients)},
        ]
        for step, counts in zip(steps, expected):
            families = [family for family in FAMILIES if family != "initial" or step["step"] == 0]
            seen = {key: value for key, value in step.items() if "_nonfinite" in key}
            self.assertEqual({key: value for key, value in seen.items() if value},
                             {f"{family}_nonfinite{of}": count for family, by_name in counts.items() for of, count in by_name.items()})
            self.assertEqual(set(seen), {f"{family}_nonfinite{of}" for family in families
                                         for of in ("", *(f"{{{name}}}" for name in FAMILIES[family]))})
            self.assertEqual(step["nonfinite_grads"], step["grad_nonfinite"])
        fields = ("step", "stage", "module", "tensor", "kind", "count", "elements")
        self.assertEqual([tuple(event[field] for field in fields) for event in self.events("first_nonfinite")],
                         [(2, "after_backward", "3", "3.bias", "nan", 1, 2), (4, "forward", "1", "output", "inf", 2, 24)])

    @unittest.skipUnless(HAS_NUMPY, f"{PYTHON} has no numpy")
    def test_generators_by_their_names(self):
        steps, _ = self.steps(DRAWS, record=["generator_digest", "generator_digest{*}"])
        for name, changes in (("{numpy}", [1, 5]), ("{python}", [2]), ("{torch}", [3]), ("{cuda}", [4]), ("", [1, 2, 3, 4, 5])):
            digests = [step["generator_digest" + name] for step in steps]
            self.assertEqual([step for step in range(1, 7) if digests[step] != digests[step - 1]], changes, name)

    def test_seconds_in_collectives_of_tensors_on_a_device(self):
        steps, _ = self.steps(ON_A_DEVICE, self.folder + "/store", record=["comm_s"])
        self.assertEqual([step.get("comm_s", 0) > 0 for step in steps], [True, True] + 3 * [False])
        self.assertTrue(all("comm_s" not in step for step in steps[2:]))


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
