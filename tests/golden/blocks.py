"""Golden numbers for the transformer block: tests/golden/blocks.golden.

Outputs, gradients and first values of pre-norm and post-norm blocks as
PyTorch computes them in float32, with and without masks and dropout.

Run with the Python that has Debian's python3-torch.
"""

import os

import torch
from torch import nn

FOLDER = os.path.dirname(os.path.abspath(__file__))
lines = []


def write(name, numbers):
    """tensor NAME d0 d1 ... and then its numbers, eight a line, in hex."""
    tensor = torch.as_tensor(numbers).detach()
    lines.append(" ".join(["tensor", name] + [str(d) for d in tensor.shape]))
    words = [float(x).hex().replace("0000000p", "p") for x in tensor.reshape(-1)]
    for i in range(0, len(words), 8):
        lines.append(" ".join(words[i : i + 8]))


class Block(nn.Module):
    """One block; the norms stand before the layers or behind the sums."""

    def __init__(self, width, heads, hidden, activation, dropout, post):
        super().__init__()
        self.post = post
        self.norm1 = nn.LayerNorm(width)
        self.attn = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.norm2 = nn.LayerNorm(width)
        self.ff = nn.Sequential(nn.Linear(width, hidden), activation,
                                nn.Linear(hidden, width), nn.Dropout(dropout))

    def attend(self, x, mask):
        return self.attn(x, x, x, attn_mask=mask)[0]

    def forward(self, x, mask=None):
        if self.post:
            x = self.norm1(x + self.attend(x, mask))
            return self.norm2(x + self.ff(x))
        x = x + self.attend(self.norm1(x), mask)
        return x + self.ff(self.norm2(x))


# batch, positions, width, heads, hidden, causal, dropout, relu; the first
# two are for one kind of block each, the first of them pre-norm
CASES = [(2, 8, 32, 4, 128, 0, 0, 0), (2, 10, 32, 4, 32, 0, 0, 0),
         (1, 1, 4, 1, 4, 0, 0, 0), (3, 5, 6, 2, 9, 1, 0, 1),
         (2, 7, 8, 2, 16, 1, 0.1, 0)]

for i, (batch, positions, width, heads, hidden, causal, dropout, relu) in enumerate(CASES):
    for post in (0, 1) if i > 1 else (i,):
        name = f"block/{i}/{post}"
        torch.manual_seed(i)
        block = Block(width, heads, hidden, nn.ReLU() if relu else nn.GELU(), dropout, post)
        write(f"{name}/facts", [batch, positions, width, heads, hidden, causal, dropout, relu, post])
        for key, p in block.named_parameters():
            write(f"{name}/{key}", p)
        x = torch.randn(batch, positions, width).requires_grad_()
        mask = torch.ones(positions, positions, dtype=torch.bool).triu(1) if causal else None
        y = block(x, mask)
        wanted = torch.randn(y.shape)
        y.backward(wanted)
        write(f"{name}/x", x)
        write(f"{name}/output", y)
        write(f"{name}/wanted", wanted)
        write(f"{name}/x/gradient", x.grad)
        for key, p in block.named_parameters():
            write(f"{name}/{key}/gradient", p.grad)
write("block/count", float(len(CASES)))

with open(os.path.join(FOLDER, "blocks.golden"), "w") as file:
    file.write("# The transformer block as PyTorch computes it.\n# Made by tests/golden/blocks.py.\n")
    file.write("\n".join(lines) + "\n")
