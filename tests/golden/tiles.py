"""Golden numbers for attention over long sequences: tests/golden/tiles.golden.

Inputs are not stored: both sides draw them from PyTorch's stream, seed 0, in
the order query, key, value, wanted. PyTorch computes in double; what is stored
is rounded to float32 once.

Run with the Python that has Debian's python3-torch.
"""
import math
import os
import re

import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tiles.golden")
lines = []


def short(number):
    """The hex of a number without the zeros that a double adds to a float."""
    if number in (0, 1):
        return str(int(number))
    return re.sub(r"\.?0*p", "p", number.hex())


def write(name, tensor):
    """tensor NAME d0 d1 ... and then its numbers, eight a line, in hex."""
    tensor = tensor.detach().to(torch.float32)
    lines.append(" ".join(["tensor", name] + [str(d) for d in tensor.shape]))
    numbers = [short(float(x)) for x in tensor.reshape(-1)]
    for i in range(0, len(numbers), 8):
        lines.append(" ".join(numbers[i : i + 8]))


def split(x, heads):
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(1, 2)


def case(name, queries, keys, width, values, heads, causal):
    torch.manual_seed(0)
    q = torch.randn(1, queries, width)
    k = torch.randn(1, keys, width)
    v = torch.randn(1, keys, values)
    wanted = torch.randn(1, queries, values)
    q, k, v, wanted = [x.double() for x in (q, k, v, wanted)]
    for x in (q, k, v):
        x.requires_grad_(True)
    scores = split(q, heads) @ split(k, heads).transpose(2, 3)
    scores = scores / math.sqrt(width // heads)
    if causal:
        i, j = torch.arange(queries)[:, None], torch.arange(keys)[None, :]
        scores = scores.masked_fill(j > i + keys - queries, -math.inf)
    read = scores.softmax(-1) @ split(v, heads)
    output = read.transpose(1, 2).reshape(1, queries, values)
    output.backward(wanted)
    write(name + "/facts", torch.tensor([queries, keys, width, values, heads, causal]))
    write(name + "/output", output)
    write(name + "/query-gradient", q.grad)
    write(name + "/key-gradient", k.grad)
    write(name + "/value-gradient", v.grad)


case("open", 512, 600, 6, 4, 2, False)
case("causal", 530, 777, 6, 4, 2, True)
with open(OUT, "w") as f:
    f.write("# Written by tests/golden/tiles.py with PyTorch\n")
    f.write("\n".join(lines) + "\n")
