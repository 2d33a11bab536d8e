"""Golden numbers for training: tests/golden/training.golden.

Optimisers, clipping, loaders, the two tasks, and the losses of the first
hundred steps of three models, all as PyTorch computes them in float32.

Run with the Python that has Debian's python3-torch.
"""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import models

FOLDER = os.path.dirname(os.path.abspath(__file__))
lines = []


def write(name, numbers):
    """tensor NAME d0 d1 ... and then its numbers, eight a line, in hex."""
    tensor = torch.as_tensor(numbers).detach()
    lines.append(" ".join(["tensor", name] + [str(d) for d in tensor.shape]))
    words = [float(x).hex().replace("0000000p", "p") for x in tensor.reshape(-1)]
    for i in range(0, len(words), 8):
        lines.append(" ".join(words[i : i + 8]))


def optimisers():
    """Every setting from the same start along the same gradients."""
    torch.manual_seed(1)
    start = [torch.randn(3, 5), torch.randn(17)]
    steps = 12
    # Gradients of very different sizes, some of them zero.
    gradients = [[torch.randn(p.shape) * 10.0 ** (t % 5 - 3) for p in start]
                 for t in range(steps)]
    for t in range(steps):
        gradients[t][1][:2] = 0.0
    for i, p in enumerate(start):
        write(f"optimiser/start/{i}", p)
        for t in range(steps):
            write(f"optimiser/gradient/{t}/{i}", gradients[t][i])
    settings = {
        "adam": (torch.optim.Adam, {}),
        "adam-decay": (torch.optim.Adam, {"weight_decay": 0.1}),
        "adamw": (torch.optim.AdamW, {}),
        "adamw-own": (torch.optim.AdamW, {"weight_decay": 0.3, "betas": (0.8, 0.95), "eps": 1e-4}),
        "adam-zeros": (torch.optim.Adam, {"betas": (0.0, 0.0), "eps": 1e-3}),
    }
    for name, (kind, options) in settings.items():
        parameters = [nn.Parameter(p.clone()) for p in start]
        optimiser = kind(parameters, lr=0.01, **options)
        for t in range(steps):
            for p, gradient in zip(parameters, gradients[t]):
                p.grad = gradient.clone()
            # The rate is another in each step, as a schedule makes it.
            optimiser.param_groups[0]["lr"] = 0.01 * min(1.0, (t + 1) / 5)
            optimiser.step()
            for i, p in enumerate(parameters):
                write(f"optimiser/{name}/{t}/{i}", p)


def clipping():
    """Gradients shorter and longer than the limit, before and after."""
    torch.manual_seed(2)
    for name, scale in (("short", 0.01), ("long", 3.0), ("longer", 1e12), ("zero", 0.0)):
        parameters = [nn.Parameter(torch.zeros(shape)) for shape in ((7, 9), (33,), (1,))]
        for i, p in enumerate(parameters):
            p.grad = torch.randn(p.shape) * scale
            write(f"clip/{name}/before/{i}", p.grad)
        write(f"clip/{name}/norm", [nn.utils.clip_grad_norm_(parameters, 1.0)])
        for i, p in enumerate(parameters):
            write(f"clip/{name}/after/{i}", p.grad)


def loaders():
    """The order over three epochs of both kinds of loader, and the dropout
    masks of a model that draws from the same stream between two batches."""
    for name, count, batch, dropout in (("plain", 37, 8, 0.0), ("even", 24, 8, 0.0),
                                        ("dropout", 37, 8, 0.25)):
        torch.manual_seed(3)
        loader = DataLoader(TensorDataset(torch.arange(count)), batch_size=batch, shuffle=True)
        order, masks = [], []
        for _ in range(3):
            for (numbers,) in loader:
                order.append(numbers)
                if dropout > 0:
                    masks.append(functional.dropout(torch.ones(11), dropout, training=True))
        write(f"loader/{name}", torch.cat(order))
        if dropout > 0:
            write(f"loader/{name}/masks", torch.stack(masks))
    for seed in (0, 5):
        loader = DataLoader(TensorDataset(torch.arange(2000)), batch_size=64, shuffle=True,
                            generator=torch.Generator().manual_seed(seed))
        write(f"loader/seeded/{seed}", torch.cat([numbers for _ in range(3) for (numbers,) in loader]))


def tasks():
    """Sums that a wrong draw anywhere would change, and the first rows."""
    for name, count, length, seed in (("train", 8000, 8, 0), ("test", 2000, 8, 1), ("long", 50, 13, 7)):
        tokens, labels = models.sequences(count, length, seed)
        place = torch.arange(count * length).reshape(count, length) % 101
        write(f"task/repeated/{name}", [float((tokens * place).sum()), float(labels.sum())])
        write(f"task/repeated/{name}/tokens", tokens[:8].float())
        write(f"task/repeated/{name}/labels", labels[:8].float())
    values, labels = models.task(100, 60, 1)
    write("task/first/values", values[:2, :, 0])
    write("task/first/labels", labels.float())


def losses():
    """The first hundred steps, batch by batch."""
    for name, make in (("bottleneck", lambda: models.Bottleneck(8)),
                       ("positions-matter", lambda: models.PositionsMatter(True)),
                       ("positions-left-out", lambda: models.PositionsMatter(False))):
        found = []
        models.fit(make, steps=100, losses=found)
        write(f"losses/{name}", found)
    for name, make in (("first-element", lambda: models.FirstElement(60)),
                       ("first-element-rnn", lambda: models.Recurrent(nn.RNN)),
                       ("first-element-lstm", lambda: models.Recurrent(nn.LSTM))):
        found = []
        models.train(make, 60, 0, steps=100, losses=found)
        write(f"losses/{name}", found)


torch.set_num_threads(1)
for part in (optimisers, clipping, loaders, tasks, losses):
    lines.append(f"# {part.__name__}")
    part()
with open(os.path.join(FOLDER, "training.golden"), "w", encoding="ascii") as file:
    file.write("\n".join(lines) + "\n")
