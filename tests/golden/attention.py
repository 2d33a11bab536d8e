"""Golden numbers for softmax and attention: tests/golden/attention.golden.

PyTorch computes in double from float32 inputs; what is stored is rounded to
float32 once. A row with nothing to see has zero weights and passes no
gradient, which PyTorch's formula cannot say by itself: such a row is computed
without its mask and then multiplied by zero.

Run with the Python that has Debian's python3-torch.
"""
import math
import os
import re

import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attention.golden")
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


def masked_softmax(scores, keep):
    """Softmax over the keys that keep shows; zeros where it shows none."""
    if keep is None:
        return scores.softmax(-1)
    some = keep.any(-1, keepdim=True)
    hidden = scores.masked_fill(~keep & some, -math.inf)
    return hidden.softmax(-1) * some


def causal(queries, keys):
    """The last query lines up with the last key."""
    i, j = torch.arange(queries)[:, None], torch.arange(keys)[None, :]
    return j <= i + keys - queries


def padding(batch, keys):
    """Sequence b sees all but its last b + 1 keys."""
    return torch.arange(keys)[None, :] < keys - 1 - torch.arange(batch)[:, None]


def keep_of(kind, batch, queries, keys):
    """What each query sees, (batch or 1, queries, keys), or None."""
    if kind == "none":
        return None
    if kind == "causal":
        return causal(queries, keys)[None]
    if kind == "padding":
        return padding(batch, keys)[:, None, :].expand(batch, queries, keys)
    if kind == "both":
        return causal(queries, keys)[None] & padding(batch, keys)[:, None, :]
    if kind == "random":
        return torch.rand(batch, queries, keys) < 0.5
    if kind == "empty-rows":  # every other query sees nothing
        keep = torch.rand(batch, queries, keys) < 0.7
        keep[:, ::2] = False
        return keep
    if kind == "nothing":
        return torch.zeros(batch, queries, keys, dtype=torch.bool)
    raise ValueError(kind)


KINDS = ["none", "causal", "padding", "both", "random", "empty-rows", "nothing"]


def attend_case(name, batch, heads, queries, keys, width, value_width, kind,
                scale=0.0, factor=1.0, whole=False):
    """One call of attn_attend, with gradients of output and weights given."""
    def draw(*shape):
        if whole:  # whole numbers: their scores are exact in float32
            return torch.randint(-6, 7, shape).to(torch.float32)
        return torch.randn(*shape)

    query = draw(batch, queries, width) * factor
    key, value = draw(batch, keys, width), draw(batch, keys, value_width)
    wanted = draw(batch, queries, value_width)
    wanted_weights = draw(batch, heads, queries, keys)
    keep = keep_of(kind, batch, queries, keys)
    q, k, v = (x.double().requires_grad_() for x in (query, key, value))

    def split(x):
        return x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    used = scale or 1 / math.sqrt(width // heads)
    scores = used * split(q) @ split(k).transpose(-1, -2)
    weights = masked_softmax(scores, None if keep is None else keep[:, None])
    output = (weights @ split(v)).transpose(1, 2).reshape(batch, queries, value_width)
    loss = (output * wanted).sum() + (weights * wanted_weights).sum()
    loss.backward()

    facts = [batch, heads, queries, keys, width, value_width, scale, KINDS.index(kind)]
    write(f"{name}/facts", torch.tensor(facts))
    for part, tensor in (("query", query), ("key", key), ("value", value),
                         ("wanted", wanted), ("wanted-weights", wanted_weights),
                         ("output", output), ("weights", weights),
                         ("query-gradient", q.grad), ("key-gradient", k.grad),
                         ("value-gradient", v.grad)):
        write(f"{name}/{part}", tensor)
    if keep is not None:
        write(f"{name}/keep", keep)


def softmax_case(name, shape, kind, factor=1.0):
    """One call of attn_softmax on scores of rank 2, 3 or 4."""
    scores = torch.randn(*shape) * factor
    wanted = torch.randn(*shape)
    batch = shape[0] if len(shape) > 2 else 1
    keep = keep_of(kind, batch, shape[-2], shape[-1])
    s = scores.double().requires_grad_()
    rows = s.reshape(batch, -1, shape[-2], shape[-1])
    weights = masked_softmax(rows, None if keep is None else keep[:, None])
    (weights.reshape(shape) * wanted).sum().backward()
    write(f"{name}/kind", torch.tensor([KINDS.index(kind)]))
    write(f"{name}/scores", scores)
    write(f"{name}/wanted", wanted)
    write(f"{name}/weights", weights.reshape(shape))
    write(f"{name}/gradient", s.grad)
    if keep is not None:
        write(f"{name}/keep", keep)


def main():
    torch.manual_seed(20)
    attend = [
        # batch heads queries keys width value-width kind
        (1, 1, 1, 1, 1, 1, "none"),
        (1, 1, 1, 1, 1, 1, "nothing"),
        (1, 1, 1, 5, 3, 2, "none"),
        (1, 1, 5, 1, 2, 3, "none"),
        (1, 1, 3, 3, 1, 4, "causal"),
        (2, 1, 4, 4, 8, 8, "none"),
        (2, 2, 5, 5, 6, 4, "padding"),
        (3, 3, 6, 6, 9, 6, "both"),
        (2, 4, 7, 7, 8, 12, "random"),
        (2, 2, 4, 9, 4, 6, "causal"),      # the last four of nine
        (1, 2, 9, 4, 4, 4, "causal"),      # the first five see nothing
        (2, 4, 6, 5, 8, 8, "empty-rows"),
        (2, 1, 3, 4, 2, 2, "nothing"),
        (2, 3, 17, 33, 6, 9, "random"),
        (1, 2, 65, 70, 2, 2, "causal"),    # one query more than a slice
        (1, 1, 130, 20, 2, 1, "random"),
    ]
    for i, arguments in enumerate(attend):
        attend_case(f"attend/{i}", *arguments)
    more = len(attend)
    attend_case(f"attend/{more}", 2, 2, 5, 6, 8, 4, "random", scale=0.25)
    attend_case(f"attend/{more + 1}", 1, 1, 3, 1500, 2, 1, "none")
    # Scores up to ten thousand and more, exact in float32.
    attend_case(f"attend/{more + 2}", 1, 1, 6, 6, 4, 4, "none", factor=256.0, whole=True)
    attend_case(f"attend/{more + 3}", 2, 2, 6, 6, 8, 8, "empty-rows", factor=256.0, whole=True)
    write("attend/count", torch.tensor([more + 4]))

    softmax = [
        ((1, 1), "none"), ((1, 1), "nothing"), ((3, 5), "none"), ((5, 5), "causal"),
        ((2, 4, 6), "padding"), ((2, 5, 5), "both"), ((2, 3, 4, 7), "random"),
        ((2, 3, 4, 4), "empty-rows"), ((2, 1000), "none"),
    ]
    for i, (shape, kind) in enumerate(softmax):
        softmax_case(f"softmax/{i}", shape, kind)
    softmax_case(f"softmax/{len(softmax)}", (4, 9), "random", factor=1e4)
    write("softmax/count", torch.tensor([len(softmax) + 1]))

    with open(OUT, "w") as file:
        file.write("\n".join(lines) + "\n")


main()
