#!/usr/bin/env python3
"""The faults of collectives in real programs of two ranks, by all the ways in which a program calls collectives.

Usage: rank_faults_test.py [unittest options], as hooks_test.py
"""
import collections
import sys

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position
from hooks_test import HOOKS, HooksTest, fault, needs, needs_torch  # pylint: disable=wrong-import-position

# A way: the collective as the trace calls it, its elements, what the two ranks see without a fault, and where both leave it out.
Way = collections.namedtuple("Way", "op elements seen left_out")
ANY = {"at_once": Way("all_reduce", 2, [6, 6], [2, 4]), "later": Way("all_reduce", 2, [6, 6], [2, 4])}
WAYS = {
    **ANY,
    "functional": Way("all_reduce", 2, [6, 6], [2, 4]),
    "within_an_operation": Way("all_reduce", 2, [6, 6], [2, 4]),
    "gathered": Way("all_gather_into_tensor", 6, [6, 6], [0, 0]),
    "gathered_in_a_list": Way("all_gather", 6, [6, 6], [0, 0]),
    "exchanged": Way("all_to_all_single", 8, [5, 7], [0, 0]),
    "scattered": Way("reduce_scatter_tensor", 3, [3, 3], [0, 0]),
    "scattered_in_a_list": Way("reduce_scatter", 3, [3, 3], [0, 0]),
    "sent": Way("broadcast", 2, [2, 2], [2, 4]),
}


def on_rank_1(name, trigger, **parameters):
    return {**fault(name, **parameters), "id": name, "trigger": {**trigger, "ranks": [1]}}


@needs_torch
class CollectiveFaultsTest(HooksTest):
    def fired(self, rank=1, name=""):
        self.assertEqual(self.events("hook_failed", rank), [])
        return [(event["step"], event["before"], event["after"]) for event in self.events("fired", rank) if event["fault"].endswith(name)]

    def digests(self, rank):
        return [step["shard_digest"] for step in self.records(rank=rank)]

    def seen(self, said, rank):
        return [line["seen"] for line in said if line["rank"] == rank]

    def assert_acts(self, ways):
        """In turns: late, then with a wrong result on one rank, then left out on both, and at last without a fault again."""
        number = len(ways)
        first, second, third = ({"from": n * number, "to": (n + 1) * number - 1} for n in range(3))
        faults = [on_rank_1("collective.delay", first, seconds=0.4), on_rank_1("collective.corrupt_result", second, value=50.0),
                  {**fault("collective.skip"), "trigger": third}]
        said = self.two_ranks("summed", str(4 * number), *ways, faults=faults)
        late, wrong = self.fired(name="delay"), self.fired(name="corrupt_result")
        self.assertEqual([(step, before, after >= 0.4) for step, before, after in late], [(step, 0, True) for step in range(number)])
        self.assertEqual([(step, after) for step, _, after in wrong], [(number + step, 50) for step in range(number)])
        self.assertEqual((self.fired(0, "delay"), self.fired(0, "corrupt_result")), ([], []))
        self.assertEqual([event["op"] for event in self.events("fired", 1)[: 2 * number]], 2 * [way.op for way in ways.values()])
        for rank in (0, 1):
            healthy, left_out = ([way[key][rank] for way in ways.values()] for key in (2, 3))
            self.assertEqual(self.fired(rank, "skip"), [(2 * number + i, way.op, "left out") for i, way in enumerate(ways.values())])
            changed = [one - before + 50 if rank else one for one, (_, before, _) in zip(healthy, wrong)]
            self.assertEqual(self.seen(said, rank), healthy + changed + left_out + healthy)
            slow = [step["step_s"] > 0.35 for step, name in zip(self.records(rank=rank), ways) if rank or name != "sent"]
            self.assertTrue(all(slow), "the other one waits, but where it sends")

    def assert_does_not_match(self, ways):
        for name, way in ways.items():
            with self.subTest(name):
                self.setUp()
                is_taken = name == "sent"  # Gloo minds no message that is shorter than it should be
                only = on_rank_1("collective.mismatch", {"at": 2}, times=3)
                said = self.two_ranks("summed", "4", name, status=0 if is_taken else 1, faults=[only])
                if is_taken:
                    self.assertEqual(self.seen(said, 1)[2:], [way.left_out[1], way.seen[1]])
                self.assertEqual(self.fired(), [(2, way.elements, 3 * way.elements)])
                self.assertEqual((self.fired(rank=0), self.seen(said, 0)[:2], self.seen(said, 1)[:2]), ([], *([one] * 2 for one in way.seen)))

    def assert_one_rank_leaves_it_out(self, name):
        """The other one gets what the next one of that rank sends; its last one waits for ever."""
        said = self.two_ranks("summed", "6", name, status=1, faults=[on_rank_1("collective.skip", {"at": 4})])
        self.assertEqual((self.fired(), self.fired(rank=0)), ([(4, "all_reduce", "left out")], []))
        self.assertEqual((self.seen(said, 0), self.seen(said, 1)), ([6] * 5, [6, 6, 6, 6, 4, 6]))

    def test_all_reduce(self):
        self.assert_acts(ANY)

    def test_all_reduce_that_one_rank_leaves_out(self):
        self.assert_one_rank_leaves_it_out("later")

    def test_all_reduce_that_does_not_match(self):
        self.assert_does_not_match(ANY)

    @needs("boxed")
    def test_all_ways(self):
        self.assert_acts(WAYS)

    @needs("boxed")
    def test_functional_collective_that_one_rank_leaves_out(self):
        self.assert_one_rank_leaves_it_out("functional")

    @needs("boxed")
    def test_ways_that_do_not_match(self):
        self.assert_does_not_match({name: WAYS[name] for name in ("functional", "gathered", "exchanged", "scattered", "sent")})

    # A step of `ddp` has the sum of the step before, and that of all gradients: the first two have DDP's set-up, too.

    def test_a_rank_of_ddp_that_is_late(self):
        self.two_ranks(faults=[on_rank_1("collective.delay", {"at": 3}, seconds=1.0)])
        (step, before, after), = self.fired()
        self.assertEqual((step, before, after >= 1, self.fired(rank=0)), (3, 0, True, []))
        for rank in (0, 1):
            self.assertEqual([one["step_s"] > 0.9 for one in self.records(rank=rank)[1:]], [False, False, True] + [False] * 4, "the other one waits")

    @needs("boxed")
    def test_what_ddp_itself_reduces(self):
        """A wrong result on one rank is a wrong gradient there, and a longer tensor or none ends the run."""
        healthy = self.two_ranks(hooks=False)
        gradients = {"op": "all_reduce", "call": 1}
        said = self.two_ranks(record=["param_digest"], faults=[on_rank_1("collective.corrupt_result", {"at": 4}, value=50.0, **gradients)])
        (step, before, after), = self.fired()
        self.assertEqual((step, abs(before) < 5, after), (4, True, 50))
        digests = [[one["param_digest"] for one in self.records(rank=rank)] for rank in (0, 1)]
        self.assertEqual([a == b for a, b in zip(*digests)], [True] * 4 + [False] * 4)
        losses = [[line["loss"] for line in lines if line["rank"] == 1] for lines in (healthy, said)]
        self.assertEqual([a == b for a, b in zip(*losses)], [True] * 5 + [False] * 3)
        for name, expected in (("skip", (4, "all_reduce", "left out")), ("mismatch", (4, 161, 322))):
            self.setUp()
            said = self.two_ranks(status=1, faults=[on_rank_1("collective." + name, {"at": 4}, **gradients)])
            self.assertEqual((self.fired(), self.fired(rank=0)), ([expected], []))
            self.assertLess(len([line for line in said if line["rank"] == 0]), 8)

    @needs("boxed")
    def test_fully_sharded(self):
        """Each rank's part of the gradients is what the reduction has left there, and the weights of all ranks are gathered from it."""
        program = ["sharded", "6", "none", "unclipped"]
        healthy = self.two_ranks(*program, record=["shard_digest"])
        digests = [self.digests(rank) for rank in (0, 1)]
        self.setUp()
        part = {"op": "reduce_scatter*", "call": 1}  # the first one is of the last layer, whose one row rank 0 holds
        faults = [on_rank_1("collective.delay", {"at": 2}, seconds=1.0, op="all_gather*"),
                  on_rank_1("collective.corrupt_result", {"at": 3}, value=50.0, **part)]
        said = self.two_ranks(*program, record=["shard_digest"], faults=faults)
        late, wrong = self.fired()
        self.assertEqual((late[:2], late[2] >= 1, wrong[0], wrong[2], self.fired(rank=0)), ((2, 0), True, 3, 50, []))
        for rank in (0, 1):
            self.assertGreater(self.records(rank=rank)[2]["step_s"], 0.9, "the other one waits")
            losses = [[line["loss"] for line in lines if line["rank"] == rank] for lines in (healthy, said)]
            self.assertEqual([a == b for a, b in zip(*losses)], [True] * 4 + [False] * 2)
            equal = [a == b for a, b in zip(self.digests(rank), digests[rank])]
            self.assertEqual(equal, [True] * (4 - rank) + [False] * (2 + rank), "a step later it is in all parts")
        for name in ("skip", "mismatch"):
            self.setUp()
            said = self.two_ranks(*program, status=1, faults=[on_rank_1("collective." + name, {"at": 3}, **part)])
            self.assertEqual((len(self.fired()), self.fired(rank=0)), (1, []))
            self.assertLess(len([line for line in said if line["rank"] == 0]), 6)


OF_RANKS = [one for one in HOOKS["faults"] if one["name"].startswith("collective.")]


@needs_torch
class BrokenCollectiveFaultsTest(HooksTest):
    """A fault whose own code fails: the training goes on as if it was not there."""

    def test_each_that_cannot_find_out_whether_it_is_due(self):
        self.assert_goes_on([(one["name"], {}, "deciding") for one in OF_RANKS])

    # What was written by then stays.
    def test_each_that_cannot_tell_what_it_does(self):
        self.assert_goes_on([(one["name"], {}, "telling") for one in OF_RANKS])

    def test_each_whose_parameters_are_of_no_use(self):
        self.assert_goes_on([(one["name"], {parameter["name"]: None}, "nothing") for one in OF_RANKS for parameter in one["params"]])

    def test_what_another_torch_lacks(self):
        self.assert_goes_on([(one["name"], {}, "no collective faults") for one in OF_RANKS])

    @needs("boxed")
    def test_what_another_torch_lacks_of_works(self):
        self.assert_goes_on([("collective.skip", {}, "no works"), ("collective.corrupt_result", {}, "no works"),
                             ("collective.corrupt_result", {}, "no waiting"), ("collective.delay", {}, "no group")])


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
