"""Trains a linear model, each rank on its share of every batch: the smallest program that all scenarios here can break. It needs Python alone.

  srun -n 2 python3 train.py --steps=60 --checkpoints=run/checkpoints --store=/shared

Rank 0 adds up the gradients of all and sends the sum back. It saves every few steps, in the folder --store, and notes in --checkpoints which
file is the newest; there the next start goes on. With --elastic=true it may have another number of ranks: a step has the same samples
whatever that is, so the losses stay the same.
"""
import argparse
import array
import json
import os
import random
import select
import socket
import sys
import time

RANK = int(os.environ.get("SLURM_PROCID") or os.environ["RANK"])
RANKS = int(os.environ.get("SLURM_NTASKS") or os.environ["WORLD_SIZE"])
ADDRESS = os.environ.get("ADDRESS") or socket.gethostname()  # of this machine, where its name is none
WEIGHTS = 500  # 4 KB go over the network for each rank and step, both ways
BATCH = 8
RATE = 0.004
SAVED_EVERY = 5
GIVE_UP_S = 2  # the address may be that of an earlier start


def sample(step, number):
    source = random.Random(step * BATCH + number)
    inputs = [source.gauss(0, 1) for _ in range(WEIGHTS)]
    return inputs, sum(inputs[::2])


def gradient_and_loss(weights, step):
    """Of this rank's samples: the sum over all ranks is that of the batch."""
    total = [0.0] * (WEIGHTS + 1)
    for number in range(RANK, BATCH, RANKS):
        inputs, wanted = sample(step, number)
        error = sum(map(float.__mul__, weights, inputs)) - wanted
        for at, value in enumerate(inputs):
            total[at] += 2 * error * value / BATCH
        total[WEIGHTS] += error * error / BATCH
    return total


def send(peer, numbers):
    peer.sendall(array.array("d", numbers).tobytes())


def receive(peer):
    data = b""
    while len(data) < 8 * (WEIGHTS + 1):
        more = peer.recv(8 * (WEIGHTS + 1) - len(data))
        if not more:
            sys.exit("the peer is gone")
        data += more
    return list(array.array("d", data))


def meet_followers(folder, begin, weights):
    """Those that have said that they know where to begin. Who has given up meanwhile says nothing, and comes again."""
    listener, peers = socket.create_server((ADDRESS, 0)), {}
    with open(folder + "/leader.new", "w", encoding="utf-8") as file:
        json.dump(listener.getsockname()[:2], file)
    os.replace(folder + "/leader.new", folder + "/leader")
    while len(peers) < RANKS - 1:
        peer = listener.accept()[0]
        try:
            peer.settimeout(GIVE_UP_S)
            rank = peer.recv(1)[0]
            send(peer, [*weights, begin])
            if peer.recv(1):
                peers[rank] = peer
                peer.settimeout(None)
        except (OSError, IndexError):
            pass
    return [peers[rank] for rank in sorted(peers)]


def meet_leader(folder):
    for _ in range(300):
        try:
            with open(folder + "/leader", encoding="utf-8") as file:
                leader = socket.create_connection(tuple(json.load(file)), timeout=GIVE_UP_S)
            leader.sendall(bytes([RANK]))
            *weights, begin = receive(leader)
            leader.sendall(b"y")
            leader.settimeout(None)
            return leader, int(begin), weights
        except (OSError, ValueError):
            select.select([], [], [], 0.05)
    sys.exit("there is no rank 0")


class Checkpoints:
    def __init__(self, options):
        self.options, self.latest = options, options.checkpoints + "/latest"
        self.file = f"{options.store or options.checkpoints}/{os.environ.get('TRAINWRECK_RUN', 'run').replace('/', '.')}.json"

    def load(self):
        """The step to begin with, and the weights."""
        if not os.path.exists(self.latest):
            return 0, [0.0] * WEIGHTS
        with open(self.latest, encoding="utf-8") as file:
            path = file.read()
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
        if state["ranks"] != RANKS and self.options.elastic != "true":
            sys.exit(f"the checkpoint is that of {state['ranks']} ranks, not of {RANKS}: --elastic=true goes on from it")
        print(f"goes on from step {state['step']} with {RANKS} of {state['ranks']} ranks", file=sys.stderr, flush=True)
        return state["step"], state["weights"]

    def save(self, step, weights):
        try:
            self.replace(self.file, json.dumps({"step": step, "ranks": RANKS, "weights": weights}))
        except OSError as error:
            if self.options.saving_may_fail != "true":
                raise
            print(error, file=sys.stderr, flush=True)
        else:
            self.replace(self.latest, self.file)

    @staticmethod
    def replace(path, text):
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".new", path)


def lead(options):
    checkpoints = Checkpoints(options)
    begin, weights = checkpoints.load()
    peers = meet_followers(options.checkpoints, begin, weights)
    for step in range(begin, options.steps):
        total = gradient_and_loss(weights, step)
        for peer in peers:
            total = list(map(float.__add__, total, receive(peer)))
        for peer in peers:
            send(peer, total)
        weights = [weight - RATE * slope for weight, slope in zip(weights, total)]
        select.select([], [], [], 0.02)  # a real one takes longer; select knows no clock that could jump
        print(f"step {step}: loss {total[WEIGHTS]} at {time.time()}", flush=True)
        if (step + 1) % SAVED_EVERY == 0:
            checkpoints.save(step + 1, weights)


def follow(options):
    leader, begin, weights = meet_leader(options.checkpoints)
    for step in range(begin, options.steps):
        send(leader, gradient_and_loss(weights, step))
        weights = [weight - RATE * slope for weight, slope in zip(weights, receive(leader))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--checkpoints", required=True)
    parser.add_argument("--store", default="")
    parser.add_argument("--saving-may-fail", default="false")
    parser.add_argument("--elastic", default="false")
    options = parser.parse_args()
    follow(options) if RANK else lead(options)


if __name__ == "__main__":
    main()
