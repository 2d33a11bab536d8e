"""Golden numbers for the layers: tests/golden/layers.golden and
tests/golden/recurrence.golden.

Outputs, gradients and first values of every layer as PyTorch computes them
in float32. The gradient of an output is a tensor called wanted.

Run with the Python that has Debian's python3-torch.
"""

import math
import os

import torch
from torch import nn
from torch.nn import functional

FOLDER = os.path.dirname(os.path.abspath(__file__))
lines = []


def write(name, numbers):
    """tensor NAME d0 d1 ... and then its numbers, eight a line, in hex."""
    tensor = torch.as_tensor(numbers).detach()
    lines.append(" ".join(["tensor", name] + [str(d) for d in tensor.shape]))
    words = [float(x).hex().replace("0000000p", "p") for x in tensor.reshape(-1)]
    for i in range(0, len(words), 8):
        lines.append(" ".join(words[i : i + 8]))


def save(name, about):
    with open(os.path.join(FOLDER, name), "w") as file:
        file.write(f"# {about}\n# Made by tests/golden/layers.py.\n")
        file.write("\n".join(lines) + "\n")
    lines.clear()


def leaf(*shape, factor=1.0, offset=0.0):
    return (torch.randn(*shape) * factor + offset).requires_grad_()


def back(name, output, **inputs):
    """Writes the inputs, the output, its gradient and the inputs'."""
    for key, tensor in inputs.items():
        write(f"{name}/{key}", tensor)
    write(f"{name}/output", output)
    wanted = torch.randn(output.shape)
    write(f"{name}/wanted", wanted)
    output.backward(wanted)
    for key, tensor in inputs.items():
        write(f"{name}/{key}/gradient", tensor.grad)
        tensor.grad = None


def functions():
    torch.manual_seed(1)
    special = [0.0, -0.0, 1e-30, -1e-30, 1e-6, -1e-4, 0.01, -0.02, 0.3, 0.7,
               0.999, -1.001, 1.4, -1.42, 4.0, -5.5, 6.0, -9.0, 9.1, -12.0,
               20.0, -30.0, 80.0, -85.0, 200.0, -1000.0, 3e38, -3e38]
    apply = {"tanh": torch.tanh, "sigmoid": torch.sigmoid,
             "relu": torch.relu, "gelu": functional.gelu}
    for name, function in apply.items():
        x = torch.cat([torch.tensor(special), torch.randn(200) * 3])
        x.requires_grad_()
        back(f"function/{name}", function(x), x=x)


def norms():
    torch.manual_seed(2)
    cases = [((3, 1), 1, 0), ((2, 2), 1, 0), ((5,), 1, 0), ((3, 5), 2, 1),
             ((2, 4, 32), 1, 0), ((2, 3, 2, 7), 0.01, 0), ((4, 33), 5, 100),
             ((3, 8), 0, 2)]
    for i, (shape, factor, offset) in enumerate(cases):
        x = leaf(*shape, factor=factor, offset=offset)
        w, b = leaf(shape[-1]), leaf(shape[-1])
        y = functional.layer_norm(x, shape[-1:], w, b, 1e-5)
        back(f"norm/{i}", y, x=x, weight=w, bias=b)
    write("norm/count", float(len(cases)))


def dropouts():
    cases = [((7,), 0.5), ((3, 5), 0.1), ((2, 3, 4), 0.9), ((40, 10), 0.25)]
    for i, (shape, p) in enumerate(cases):
        torch.manual_seed(3)
        x = leaf(*shape)
        torch.manual_seed(100 + i)
        y = functional.dropout(x, p, training=True)
        write(f"dropout/{i}/p", torch.tensor(p, dtype=torch.float64))
        write(f"dropout/{i}/next", torch.rand(1))
        back(f"dropout/{i}", y, x=x)
    write("dropout/count", float(len(cases)))


def sinusoids(positions, width, base):
    even = torch.arange(0, width, 2, dtype=torch.float64)
    angle = torch.arange(positions, dtype=torch.float64)[:, None] / base ** (even / width)
    table = torch.zeros(positions, width, dtype=torch.float64)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)[:, : width // 2]
    return table.float()


def rotary(x, heads, first, base):
    """RoFormer's rotation of neighbouring columns, head by head."""
    shape = x.shape
    positions, width = shape[-2], shape[-1] // heads
    pairs = x.reshape(-1, positions, heads, width // 2, 2)
    speed = base ** (-2 * torch.arange(width // 2, dtype=torch.float64) / width)
    angle = (first + torch.arange(positions, dtype=torch.float64))[:, None] * speed
    c, s = angle.cos().float()[:, None, :], angle.sin().float()[:, None, :]
    a, b = pairs[..., 0], pairs[..., 1]
    return torch.stack([a * c - b * s, a * s + b * c], dim=-1).reshape(shape)


def relative(table, queries, keys):
    reach = table.shape[1] // 2
    key = torch.arange(keys)[None, :]
    query = torch.arange(queries)[:, None] + keys - queries
    return table[:, (key - query).clamp(-reach, reach) + reach]


def positions():
    torch.manual_seed(4)
    for i, (count, width, base) in enumerate([(6, 8, 1e4), (5, 7, 1e4), (3, 1, 1e4), (40, 5, 100.0)]):
        write(f"sinusoidal/{i}", sinusoids(count, width, base))
    cases = [((3, 2), 1, 0), ((2, 5, 8), 1, 0), ((2, 5, 8), 2, 3), ((1, 9, 12), 3, 1000), ((4, 4), 1, 2)]
    for i, (shape, heads, first) in enumerate(cases):
        x = leaf(*shape)
        write(f"rotary/{i}/facts", [float(heads), float(first), 1e4])
        back(f"rotary/{i}", rotary(x, heads, first, 1e4), x=x)
    cases = [(1, 0, 3, 3), (2, 2, 4, 4), (3, 2, 7, 7), (1, 5, 2, 6), (2, 1, 5, 2)]
    for i, (heads, reach, queries, keys) in enumerate(cases):
        table = leaf(heads, 2 * reach + 1)
        write(f"relative/{i}/facts", [float(queries), float(keys)])
        back(f"relative/{i}", relative(table, queries, keys), table=table)
    table = leaf(6, 3)
    back("learned", table[:4], table=table)


def heads():
    torch.manual_seed(5)
    x = leaf(2, 3, 8)
    back("split", x.reshape(2, 3, 4, 2).transpose(1, 2), x=x)
    x = leaf(2, 4, 3, 2)
    back("merge", x.transpose(1, 2).reshape(2, 3, 8), x=x)
    x = leaf(2, 3, 4, 5)
    back("mean-heads", x.mean(1), x=x)
    x = leaf(3, 4, 5)
    back("last", x[:, -1], x=x)


def losses():
    torch.manual_seed(6)
    cases = [((2,), 1), ((1, 1), 1), ((5, 3), 1), ((64, 2), 3), ((2, 4, 7), 1),
             ((3, 300), 2), ((4, 5), 100), ((3, 4), 1e4)]
    for i, (shape, factor) in enumerate(cases):
        z = leaf(*shape, factor=factor)
        label = torch.randint(0, shape[-1], shape[:-1])
        y = functional.cross_entropy(z.reshape(-1, shape[-1]), label.reshape(-1))
        write(f"loss/{i}/labels", label.float())
        write(f"loss/{i}/accuracy", (z.argmax(-1) == label).float().mean())
        back(f"loss/{i}", y, logits=z)
    write("loss/count", float(len(cases)))


def tied():
    """Words in, words out, through one table."""
    torch.manual_seed(7)
    table = leaf(6, 4)
    tokens = torch.tensor([[0, 5, 2], [5, 5, 1]])
    x = functional.embedding(tokens, table)
    write("tied/tokens", tokens.float())
    back("tied", torch.tanh(x) @ table.T, table=table)


def first_values():
    def made(name, layer):
        for key, tensor in layer.state_dict().items():
            write(f"first/{name}/{key}", tensor)
        write(f"first/{name}/next", torch.rand(1))

    torch.manual_seed(8)
    for i, (a, b, bias) in enumerate([(1, 1, True), (3, 5, True), (32, 2, True), (7, 4, False), (11, 16, True)]):
        write(f"first/linear/{i}/facts", [float(a), float(b), float(bias)])
        made(f"linear/{i}", nn.Linear(a, b, bias=bias))
    for i, (a, b) in enumerate([(1, 1), (3, 5), (4, 4), (10, 32), (9, 3)]):
        write(f"first/embedding/{i}/facts", [float(a), float(b)])
        made(f"embedding/{i}", nn.Embedding(a, b))
    made("norm", nn.LayerNorm(5))
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        for i, (a, b) in enumerate([(1, 1), (3, 2), (1, 6)]):
            name = f"{kind.__name__.lower()}/{i}"
            write(f"first/{name}/facts", [float(a), float(b)])
            made(name, kind(a, b, batch_first=True))
    for i, (a, h, bias) in enumerate([(1, 1, True), (8, 2, True), (6, 3, False)]):
        write(f"first/attention/{i}/facts", [float(a), float(h), float(bias)])
        made(f"attention/{i}", nn.MultiheadAttention(a, h, bias=bias, batch_first=True))
    made("feed-forward", nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 3)))


def feed_forwards():
    torch.manual_seed(9)
    for name, bend in (("gelu", functional.gelu), ("relu", functional.relu)):
        x = leaf(2, 3, 4)
        w0, b0, w2, b2 = leaf(6, 4), leaf(6), leaf(4, 6), leaf(4)
        y = functional.linear(bend(functional.linear(x, w0, b0)), w2, b2)
        back(f"feed-forward/{name}", y, x=x, w0=w0, b0=b0, w2=w2, b2=b2)


def masks(kind, batch, queries, keys):
    """True where a query must not look."""
    blocked = torch.zeros(batch, queries, keys, dtype=torch.bool)
    if kind in ("causal", "both"):
        blocked |= torch.ones(queries, keys).triu(1 + keys - queries).bool()
    if kind in ("padding", "both"):
        for b in range(batch):
            blocked[b, :, keys - b % keys :] = b % keys > 0
    if kind == "random":
        blocked = torch.rand(batch, queries, keys) < 0.4
        blocked[:, :, 0] = False
    return blocked


def attention():
    torch.manual_seed(10)
    # batch, queries, keys (0: self-attention), width, heads, mask, bias of
    # the projections, dropout, bias of the scores
    cases = [
        (1, 1, 0, 1, 1, "none", True, 0, False),
        (2, 6, 0, 8, 1, "none", True, 0, False),
        (2, 6, 0, 8, 2, "causal", True, 0, False),
        (3, 5, 0, 12, 4, "padding", False, 0, False),
        (3, 5, 0, 12, 3, "both", True, 0, False),
        (2, 4, 7, 6, 2, "none", True, 0, False),
        (2, 3, 5, 6, 3, "random", True, 0, False),
        (2, 6, 0, 8, 2, "causal", True, 0.1, False),
        (2, 4, 7, 6, 2, "none", False, 0.5, False),
        (2, 5, 0, 6, 3, "none", True, 0, True),
        (2, 5, 0, 6, 2, "causal", True, 0.3, True),
        (2, 8, 0, 32, 4, "none", True, 0, False),
    ]
    for i, (batch, queries, keys, width, heads, mask, bias, p, scores) in enumerate(cases):
        name = f"attention/{i}"
        layer = nn.MultiheadAttention(width, heads, dropout=p, bias=bias, batch_first=True)
        inputs = {"query": leaf(batch, queries, width)}
        if keys:
            inputs["key"] = leaf(batch, keys, width)
            inputs["value"] = leaf(batch, keys, width)
        q = inputs["query"]
        k, v = inputs.get("key", q), inputs.get("value", q)
        blocked = masks(mask, batch, queries, k.shape[1])
        added = torch.zeros(batch * heads, queries, k.shape[1])
        if scores:
            inputs["scores"] = leaf(heads, queries, k.shape[1])
            added = inputs["scores"].repeat(batch, 1, 1)
        added = added.masked_fill(blocked.repeat_interleave(heads, 0), -math.inf)
        for key, tensor in layer.named_parameters():
            if "bias" in key:
                nn.init.normal_(tensor)
            inputs[key] = tensor
        write(f"{name}/facts", [float(heads), p])
        if mask != "none":
            write(f"{name}/keep", (~blocked).float())
        torch.manual_seed(200 + i)
        y, weights = layer(q, k, v, attn_mask=added, average_attn_weights=False)
        write(f"{name}/weights", weights)
        write(f"{name}/mean-weights", weights.mean(1))
        torch.manual_seed(300 + i)
        back(name, y, **inputs)
    write("attention/count", float(len(cases)))


def recurrence():
    torch.manual_seed(11)
    # batch, steps, in, hidden, biases, factor of the weights, only the
    # last output is wanted
    cases = [
        (1, 1, 1, 1, True, 1, False),
        (2, 3, 4, 5, True, 1, False),
        (3, 1, 2, 4, True, 1, False),
        (5, 7, 3, 2, True, 1, True),
        (17, 4, 1, 8, True, 1, False),
        (4, 6, 5, 3, False, 1, False),
        (2, 5, 3, 4, True, 6, False),
        (1, 60, 1, 6, True, 1, True),
        (8, 8, 16, 20, True, 1, True),
    ]
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        for i, (batch, steps, width, hidden, bias, factor, last) in enumerate(cases):
            name = f"{kind.__name__.lower()}/{i}"
            layer = kind(width, hidden, bias=bias, batch_first=True)
            inputs = {"x": leaf(batch, steps, width)}
            for key, tensor in layer.named_parameters():
                with torch.no_grad():
                    tensor *= factor
                inputs[key] = tensor
            y = layer(inputs["x"])[0]
            back(name, y[:, -1] if last else y, **inputs)
    write("count", float(len(cases)))


functions()
norms()
dropouts()
positions()
heads()
losses()
tied()
first_values()
feed_forwards()
attention()
save("layers.golden", "The layers around attention, by PyTorch " + torch.__version__)
recurrence()
save("recurrence.golden", "Recurrent networks, by PyTorch " + torch.__version__)
