#!/usr/bin/env python3
"""The faults of collectives in real programs of two ranks, by all the ways in which a program calls collectives.

Usage: rank_faults_test.py [unittest options], as hooks_test.py
"""
import collections
import sys

sys.path[:0] = ["tests", "python/tests"]
import unittest_xml  # pylint: disable=wrong-import-position
from hooks_test import HooksTest, fault, needs, needs_torch  # pylint: disable=wrong-import-position

# A way: the collective as the trace calls it, its elements, what is seen without a fault, and by rank 1 where it leaves the collective out.
Way = collections.namedtuple("Way", "op elements seen left_out")
ANY = {"at_once": Way("all_reduce", 2, [6, 6], 4), "later": Way("all_reduce", 2, [6, 6], 4)}
WAYS = {
    **ANY,
    "functional": Way("all_reduce", 2, [6, 6], 4),
    "within_an_operation": Way("all_reduce", 2, [6, 6], 4),
    "gathered": Way("all_gather_into_tensor", 6, [6, 6], 0),
    "gathered_in_a_list": Way("all_gather", 6, [6, 6], 0),
    "exchanged": Way("all_to_all_single", 8, [5, 7], 0),
    "scattered": Way("reduce_scatter_tensor", 3, [3, 3], 0),
    "scattered_in_a_list": Way("reduce_scatter", 3, [3, 3], 0),
    "sent": Way("broadcast", 2, [2, 2], 4),
}


def on_rank_1(name, at, **parameters):
    return {**fault(name, **parameters), "id": name, "trigger": {"at": at, "ranks": [1]}}


@needs_torch
class CollectiveFaultsTest(HooksTest):
    def fired(self, rank=1):
        self.assertEqual(self.events("hook_failed", rank), [])
        return [(event["fault"], event["step"], event["before"], event["after"]) for event in self.events("fired", rank)]

    def seen(self, said, rank):
        return [line["seen"] for line in said if line["rank"] == rank]

    def assert_acts(self, ways):
        """Late at step 1, wrong at step 2, and left out at step 4: the other rank gets what the next one sends, or waits for ever."""
        for name, way in ways.items():
            with self.subTest(name):
                self.setUp()
                faults = [on_rank_1("collective.delay", 1, seconds=1.0, op=way.op), on_rank_1("collective.corrupt_result", 2, value=50.0),
                          on_rank_1("collective.skip", 4)]
                said = self.two_ranks("summed", "6", name, status=None, faults=faults)
                late, wrong, left_out = self.fired()
                self.assertEqual((late[:3], late[3] >= 1), (("collective.delay", 1, 0), True))
                self.assertEqual(self.fired(rank=0), [])
                slow = 1 if name == "sent" else 0  # who sends has no need to wait
                self.assertTrue(all(self.records(rank=rank)[1]["step_s"] > 0.9 for rank in range(slow, 2)), "the other one waits")
                first, second = way.seen
                self.assertEqual((wrong[:2], wrong[3]), (("collective.corrupt_result", 2), 50))
                self.assertEqual(left_out, ("collective.skip", 4, way.op, "left out"))
                changed = second - wrong[2] + 50
                self.assertEqual(self.seen(said, 1)[:5], [second, second, changed, second, way.left_out])
                self.assertEqual(self.seen(said, 0)[:4], [first] * 4)
                self.assertNotEqual(self.status, 0, "the last one of rank 0 has no peer")

    def assert_does_not_match(self, ways):
        for name, way in ways.items():
            with self.subTest(name):
                self.setUp()
                is_taken = name == "sent"  # Gloo minds no message that is shorter than it should be
                said = self.two_ranks("summed", "4", name, status=0 if is_taken else 1, faults=[on_rank_1("collective.mismatch", 2, times=3)])
                if is_taken:
                    self.assertEqual(self.seen(said, 1)[2:], [way.left_out, way.seen[1]])
                self.assertEqual(self.fired(), [("collective.mismatch", 2, way.elements, 3 * way.elements)])
                self.assertEqual((self.fired(rank=0), self.seen(said, 0)[:2], self.seen(said, 1)[:2]), ([], *([one] * 2 for one in way.seen)))

    def test_all_reduce(self):
        self.assert_acts(ANY)

    def test_all_reduce_that_does_not_match(self):
        self.assert_does_not_match(ANY)

    @needs("boxed")
    def test_all_ways(self):
        self.assert_acts({name: way for name, way in WAYS.items() if name not in ANY})

    @needs("boxed")
    def test_all_ways_that_do_not_match(self):
        self.assert_does_not_match({name: way for name, way in WAYS.items() if name not in ANY})


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
