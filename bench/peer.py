"""PyTorch's side of the benchmark.

peer.py WORKLOAD EPOCHS   trains and prints the processor time in seconds,
                          and the last loss
peer.py --version         prints PyTorch's version
"""

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


def main():
    if sys.argv[1:] == ["--version"]:
        print(torch.__version__)
        return
    name, epochs = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    # Whatever is done once a process has been done before the clock runs.
    run(name, steps=5)
    losses = []
    start = time.process_time()
    run(name, epochs=epochs, losses=losses)
    print(f"{time.process_time() - start:.4f} {losses[-1]:.6f}")


main()
