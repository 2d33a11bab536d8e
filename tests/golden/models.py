"""The models and tasks of the book as PyTorch users would write them.

The golden numbers and the benchmark both import this, so that the book
is compared with one peer only.
"""

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def sequences(count, length, seed):
    """The repeated digit: does the first digit come again?"""
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(1, 10, (count, 1), generator=generator)
    rest = torch.randint(1, 9, (count, length - 1), generator=generator)
    rest = rest + (rest >= first).long()
    label = torch.randint(0, 2, (count,), generator=generator)
    where = torch.randint(0, length - 1, (count,), generator=generator)
    repeat = label == 1
    rest[repeat, where[repeat]] = first[repeat, 0]
    return torch.cat([first, rest], dim=1), label


class Bottleneck(nn.Module):
    """Embedding, LSTM, and a linear layer on the last output."""

    def __init__(self, hidden, kind=nn.LSTM):
        super().__init__()
        self.embedding = nn.Embedding(10, 32)
        self.recurrent = kind(32, hidden, batch_first=True)
        self.output = nn.Linear(hidden, 2)

    def forward(self, tokens):
        return self.output(self.recurrent(self.embedding(tokens))[0][:, -1])


class PositionsMatter(nn.Module):
    """One layer of attention over digits, with or without positions."""

    def __init__(self, positions):
        super().__init__()
        self.positions = positions
        self.tok = nn.Embedding(10, 32)
        self.pos = nn.Embedding(16, 32)
        self.attn = nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 2)

    def forward(self, tokens):
        h = self.tok(tokens)
        if self.positions:
            h = h + self.pos(torch.arange(tokens.shape[1]))
        a, _ = self.attn(h, h, h, need_weights=False)
        return self.head(self.norm(h + a).mean(1))


def fit(make, epochs=10, steps=None, losses=None):
    """Trains on the repeated digit; returns the accuracy on new sequences."""
    x, y = sequences(8000, 8, 0)
    torch.manual_seed(0)
    model = make()
    torch.manual_seed(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    taken = 0
    for _ in range(epochs):
        model.train()
        for tokens, label in loader:
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(tokens), label)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            if losses is not None:
                losses.append(loss.item())
            taken += 1
            if steps is not None and taken == steps:
                return model
    model.eval()
    x, y = sequences(2000, 8, 1)
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def task(count, length, seed):
    """The first element: was it positive?"""
    x = numpy.random.default_rng(seed).normal(0, 1, (count, length, 1)).astype(numpy.float32)
    return torch.from_numpy(x), torch.from_numpy((x[:, 0, 0] > 0).astype(numpy.int64))


class Recurrent(nn.Module):
    """RNN or LSTM, and a linear layer on the last output."""

    def __init__(self, kind):
        super().__init__()
        self.recurrent = kind(1, 32, batch_first=True)
        self.output = nn.Linear(32, 2)

    def forward(self, x):
        return self.output(self.recurrent(x)[0][:, -1])


class FirstElement(nn.Module):
    """One head of attention, with or without positions."""

    def __init__(self, length, positions=True):
        super().__init__()
        self.input = nn.Linear(1, 32)
        if positions:
            self.position = nn.Parameter(torch.randn(1, length, 32) * 0.02)
        else:
            self.position = None
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))
        self.output = nn.Linear(32, 2)

    def forward(self, x):
        h = self.input(x)
        if self.position is not None:
            h = h + self.position
        q, k, v = self.q(h), self.k(h), self.v(h)
        weights = torch.softmax(q @ k.transpose(-2, -1) / 32 ** 0.5, dim=-1)
        return self.output((weights @ v).mean(1))


def train(make, length, seed, epochs=60, steps=None, losses=None):
    """Trains on the first element; returns the accuracy on new sequences."""
    x, y = task(2000, length, 1)
    torch.manual_seed(seed)
    model = make()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.005)
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True,
                        generator=torch.Generator().manual_seed(seed))
    taken = 0
    for _ in range(epochs):
        for inputs, label in loader:
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(inputs), label)
            loss.backward()
            optimiser.step()
            if losses is not None:
                losses.append(loss.item())
            taken += 1
            if steps is not None and taken == steps:
                return model
    x, y = task(600, length, 2)
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()
