"""PyTorch's side of the benchmark.

peer.py WORKLOAD EPOCHS   trains and prints the processor time in seconds,
                          and the last loss
peer.py --attend LENGTH as-written|kept
                          attends forward, 8 heads of 64, and prints the
                          processor time, the shortest of several, and the
                          mean size of the output; "kept" gives PyTorch
                          memory for the scores beforehand
peer.py --version         prints PyTorch's version
"""

import math
import os
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden"))

import torch
from torch import nn

import models

WORKLOADS = {
    "bottleneck-64": (models.fit, lambda: models.Bottleneck(64)),
    "bottleneck-2": (models.fit, lambda: models.Bottleneck(2)),
    "positions-matter": (models.fit, lambda: models.PositionsMatter(True)),
    "first-element-rnn": (models.train, lambda: models.Recurrent(nn.RNN)),
    "first-element-lstm": (models.train, lambda: models.Recurrent(nn.LSTM)),
    "first-element-attention": (models.train, lambda: models.FirstElement(60)),
}


def run(name, **options):
    procedure, make = WORKLOADS[name]
    if procedure is models.train:
        options = dict(options, length=60, seed=0)
    procedure(make, **options)


def attend(length, kept):
    torch.manual_seed(0)
    q, k, v = (torch.randn(8, length, 64) for _ in range(3))
    times = []
    with torch.inference_mode():
        if kept:
            scores = torch.zeros(8, length, length)
            output = torch.zeros(8, length, 64)
        for _ in range(5):
            start = time.process_time()
            if kept:
                # beta 0: nothing of what is there is added
                torch.baddbmm(scores, q, k.transpose(1, 2), beta=0, alpha=1 / math.sqrt(64), out=scores)
                torch.softmax(scores, -1, out=scores)
                torch.bmm(scores, v, out=output)
            else:
                output = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(64), -1) @ v
            times.append(time.process_time() - start)
    print(f"{min(times):.4f} {output.abs().double().mean():.8f}")


def main():
    if sys.argv[1:] == ["--version"]:
        print(torch.__version__)
        return
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    if sys.argv[1] == "--attend":
        attend(int(sys.argv[2]), sys.argv[3] == "kept")
        return
    name, epochs = sys.argv[1], int(sys.argv[2])
    # Whatever is done once a process has been done before the clock runs.
    run(name, steps=5)
    losses = []
    start = time.process_time()
    run(name, epochs=epochs, losses=losses)
    print(f"{time.process_time() - start:.4f} {losses[-1]:.6f}")


main()
