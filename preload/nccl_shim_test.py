"""What the shim of NCCL does to programs that call a fake libnccl: one that links it, and Python through ctypes.

    nccl_shim_test.py SHIM FAKE_NCCL PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

SHIM, FAKE, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:4])

FUNCTIONS = ["ncclGroupStart", "ncclAllReduce", "ncclGroupEnd", "ncclReduce", "ncclBroadcast", "ncclBcast", "ncclAllGather",
             "ncclAlltoAll", "ncclReduceScatter", "ncclSend", "ncclRecv"]

# Python's own way to a library: a handle that is nobody else's, and functions that are asked of it.
CTYPES = """
import ctypes, sys
how, rank, ranks, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
class Id(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
nccl = ctypes.CDLL(sys.argv[5], mode=ctypes.RTLD_GLOBAL if how == "global" else ctypes.RTLD_LOCAL)
if how == "global":
    nccl = ctypes.CDLL(None)  # and whoever asks is told what comes first
unique = Id()
if ranks > 1:
    unique.internal = sys.argv[6].encode()
else:
    assert nccl.ncclGetUniqueId(ctypes.byref(unique)) == 0
comm = ctypes.c_void_p()
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, Id, ctypes.c_int]
assert nccl.ncclCommInitRank(ctypes.byref(comm), ranks, unique, rank) == 0
kept = []  # a call that is held back has its buffers to the end
for call in range(calls):
    send, receive = (ctypes.c_float * 8)(*[rank + 1] * 8), (ctypes.c_float * 8)()
    kept.append((send, receive))
    result = nccl.ncclAllReduce(send, receive, ctypes.c_size_t(8), 7, 0, comm, None)
    print(result, receive[0], receive[7], flush=True)
assert nccl.ncclCommDestroy(comm) == 0
"""


class NcclShimTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.evidence, self.log = self.folder + "/evidence", self.folder + "/log"

    def environment(self, rules, **more):
        return {"PATH": "/usr/bin:/bin", "LD_PRELOAD": SHIM, "TRAINWRECK_NCCL": rules, "TRAINWRECK_NCCL_LOG": self.evidence,
                "FAKE_NCCL_LOG": self.log, **more}

    def call(self, rules, code=0, **more):
        """{function: (result, first, last)} of the program that links libnccl."""
        for file in (self.evidence, self.log):
            if os.path.exists(file):
                os.remove(file)
        done = subprocess.run([PROGRAM], env=self.environment(rules, **more), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.stderr = done.stderr
        rows = [line.split() for line in done.stdout.splitlines()]
        return {row[0]: tuple(float(number) for number in row[1:]) for row in rows}

    def fired(self):
        if not os.path.exists(self.evidence):
            return []
        with open(self.evidence, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def reached(self):
        """What came to NCCL itself: (function, count, datatype, peer)."""
        with open(self.log, encoding="utf-8") as file:
            rows = [line.split() for line in file]
        return [(row[0], *map(int, row[1:])) for row in rows]

    def test_without_a_rule_all_calls_pass_unchanged(self):
        with_shim = self.call("")
        reached = self.reached()
        self.assertEqual(list(with_shim), FUNCTIONS)
        self.assertEqual(self.call("", LD_PRELOAD=""), with_shim)
        self.assertEqual(self.reached(), reached)
        self.assertEqual([name for name, *_ in reached if name != "ncclCommDestroy"],
                         FUNCTIONS[:6] + ["ncclBroadcast"] + FUNCTIONS[6:])
        self.assertEqual(self.fired(), [])

    def test_every_function_can_be_dropped(self):
        ops = {"ncclAllReduce": "all_reduce", "ncclReduce": "reduce", "ncclBroadcast": "broadcast", "ncclAllGather": "all_gather",
               "ncclAlltoAll": "all_to_all",
               "ncclReduceScatter": "reduce_scatter", "ncclRecv": "recv", "ncclSend": "send"}
        for function, op in ops.items():
            with self.subTest(op):
                said = self.call(f"do=drop op={op} id=it")
                self.assertEqual(said[function], (0, 0, 0), "it says that it succeeded, and nothing came")
                self.assertNotIn(function, [name for name, *_ in self.reached()[:-1]][:FUNCTIONS.index(function) + 1])
                fired, = self.fired()
                self.assertEqual((fired["id"], fired["how"], fired["op"], fired["call"]), ("it", "drop", op, 0))
                self.assertEqual((fired["before"], fired["after"]), ("called", "left out"))

    def test_calls_that_nccl_makes_itself_are_not_counted(self):
        said = self.call("do=error op=broadcast call=1 code=5")  # the second of the program's, ncclBcast
        self.assertEqual((said["ncclBroadcast"][0], said["ncclBcast"][0]), (0, 5))
        self.assertEqual(len(self.fired()), 1)
        self.call("do=delay op=broadcast ms=0 calls=0")
        self.assertEqual([fired["call"] for fired in self.fired()], [0, 1])

    def test_error(self):
        said = self.call("do=error op=all_reduce code=6")
        self.assertEqual(said["ncclAllReduce"], (6, 0, 0))
        self.assertNotIn("ncclAllReduce", [name for name, *_ in self.reached()])
        self.assertEqual((self.fired()[0]["before"], self.fired()[0]["after"]), (0, 6))

    def test_error_at_the_end_of_a_group_closes_it(self):
        said = self.call("do=error op=group_end code=2")
        self.assertEqual(said["ncclGroupEnd"][0], 2)
        self.assertIn("ncclGroupEnd", [name for name, *_ in self.reached()])

    def test_delay(self):
        begin = time.monotonic()
        said = self.call("do=delay op=all_gather ms=700")
        self.assertGreaterEqual(time.monotonic() - begin, 0.7)
        self.assertEqual(said["ncclAllGather"], (0, 1, 1))
        self.assertEqual(self.fired()[0]["after"], 700)

    def test_fewer_elements(self):
        said = self.call("do=fewer op=all_reduce elements=3")
        self.assertEqual(said["ncclAllReduce"], (0, 1, 0))
        self.assertIn(("ncclAllReduce", 5, 7, -1), self.reached())
        self.assertEqual((self.fired()[0]["before"], self.fired()[0]["after"]), (8, 5))
        self.call("do=fewer op=all_reduce elements=100")
        self.assertIn(("ncclAllReduce", 0, 7, -1), self.reached(), "never below none")

    def test_another_datatype_never_leaves_the_buffer(self):
        self.call("do=retype op=all_reduce datatype=6")
        self.assertIn(("ncclAllReduce", 8, 6, -1), self.reached())
        self.call("do=retype op=all_reduce datatype=8")
        self.assertIn(("ncclAllReduce", 4, 8, -1), self.reached())
        self.assertEqual((self.fired()[0]["before"], self.fired()[0]["after"]), (7, 8))

    def test_reorder(self):
        self.call("do=reorder op=reduce")
        names = [name for name, *_ in self.reached()]
        self.assertEqual(names.index("ncclReduce"), names.index("ncclBroadcast") + 1)
        self.assertEqual(self.fired()[0]["before"], ["call 0, reduce of 8", "the next, broadcast of 8"])
        self.assertEqual(self.fired()[0]["after"], ["the next, broadcast of 8", "call 0, reduce of 8"])

    def test_reordered_calls_that_are_alike_have_changed_places_too(self):
        program = self.python("do=reorder op=all_reduce call=1", calls=4)
        said, errors = program.communicate(timeout=60)
        self.assertEqual(said.split("\n")[:4], ["0 1.0 1.0", "0 0.0 0.0", "0 1.0 1.0", "0 1.0 1.0"], errors)
        self.assertEqual(self.fired()[0]["before"], ["call 1, all_reduce of 8", "the next, all_reduce of 8"])
        self.assertNotEqual(self.fired()[0]["before"], self.fired()[0]["after"])

    def test_a_held_call_without_a_next_one_is_never_made_and_has_not_fired(self):
        self.call("do=reorder op=recv")
        self.assertNotIn("ncclRecv", [name for name, *_ in self.reached()])
        self.assertEqual(self.fired(), [])

    def test_ranks(self):
        self.assertEqual(self.call("do=drop op=all_reduce ranks=1")["ncclAllReduce"], (0, 1, 1))
        self.assertEqual(self.fired(), [], "the communicator says rank 0")
        for name in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "TRAINWRECK_RANK"):
            self.assertEqual(self.call("do=drop op=all_reduce ranks=1", **{name: "1"})["ncclAllReduce"], (0, 0, 0), name)
            self.assertEqual(self.fired()[0]["rank"], 1)

    def test_a_rule_that_cannot_be_read_ends_the_program(self):
        self.assertEqual(self.call("do=explode", code=2), {})
        self.assertIn("trainwreck: TRAINWRECK_NCCL: do=explode: no such do", self.stderr)

    def test_evidence_that_cannot_be_written_is_said(self):
        self.call("do=drop op=send", TRAINWRECK_NCCL_LOG="/nowhere/at/all")
        self.assertIn("/nowhere/at/all: cannot be written", self.stderr)

    def python(self, rules, how="local", rank=0, ranks=1, calls=1, meeting=""):
        return subprocess.Popen([sys.executable, "-c", CTYPES, how, str(rank), str(ranks), str(calls), FAKE, meeting],
                                env=self.environment(rules, **({"RANK": str(rank)} if ranks > 1 else {})), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def test_python_through_ctypes(self):
        for how in ("local", "global"):
            with self.subTest(how):
                program = self.python("do=drop op=all_reduce call=1", how, calls=3)
                said, errors = program.communicate(timeout=60)
                self.assertEqual(program.returncode, 0, errors)
                self.assertEqual(said.split("\n")[:3], ["0 1.0 1.0", "0 0.0 0.0", "0 1.0 1.0"])
        self.assertEqual([fired["call"] for fired in self.fired()], [1, 1])

    def test_one_rank_that_leaves_a_call_out_makes_its_peer_wait(self):
        with tempfile.NamedTemporaryFile(dir="/tmp", delete=False) as file:  # its name goes into 128 bytes
            file.truncate(1 << 20)
        meeting = file.name
        ranks = [self.python("do=drop op=all_reduce call=2 ranks=1", rank=rank, ranks=2, calls=3, meeting=meeting)
                 for rank in range(2)]
        try:
            self.assertEqual(ranks[1].wait(60), 0)
            with self.assertRaises(subprocess.TimeoutExpired):
                ranks[0].wait(0.5)
        finally:
            for program in ranks:
                program.kill()
            sums = [program.communicate()[0].splitlines() for program in ranks]
        self.assertEqual(sums, [["0 3.0 3.0"] * 2, ["0 3.0 3.0"] * 2 + ["0 0.0 0.0"]])
        self.assertEqual([fired["rank"] for fired in self.fired()], [1])

    def test_questions_of_others_are_answered_as_without_it(self):
        program = "import ctypes; c = ctypes.CDLL(None); c.strlen(b'abc'); " \
            "print(c.strlen(b'abc'), hasattr(c, 'ncclAllReduce'), hasattr(c, 'no_such_function'))"
        for preload in ("", SHIM):
            done = subprocess.run([sys.executable, "-c", program], env=self.environment("", LD_PRELOAD=preload),
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.stdout, "3 False False\n", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
