"""Golden numbers for the random streams: tests/golden/streams.golden.

Everything is stored as bits, so that the tests compare exactly:

    words NAME COUNT         and then COUNT hexadecimal words
    hashes NAME WIDTH COUNT  of COUNT numbers of WIDTH bytes each, the FNV-1a
                             hash (64 bits) of every block of 4096 numbers

A float is the word of its 32 bits, a double that of its 64.

Run with the Python that has Debian's python3-torch and python3-numpy, on a
processor with AVX2: elsewhere PyTorch computes randn with other functions.
"""
import os
import sys

import numpy as np
import torch

if "CPU capability usage: AVX2" not in torch.__config__.show():
    sys.exit("streams.py: this PyTorch does not use AVX2 here")

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "streams.golden")
BLOCK = 4096
lines = [
    "# PyTorch %s and NumPy %s, written by streams.py" % (torch.__version__, np.__version__)
]


def bits(numbers):
    """The bits of floats or integers as unsigned words."""
    numbers = np.ascontiguousarray(numbers)
    return numbers.view(np.dtype("<u%d" % numbers.dtype.itemsize)).reshape(-1)


def words(name, numbers):
    found = bits(numbers)
    lines.append("words %s %d" % (name, len(found)))
    for start in range(0, len(found), 8):
        lines.append(" ".join("%x" % w for w in found[start : start + 8].tolist()))


def hashes(name, numbers):
    found = bits(numbers)
    width = found.dtype.itemsize
    whole = len(found) // BLOCK * BLOCK
    blocks = [found[:whole].reshape(-1, BLOCK)] if whole > 0 else []
    if whole < len(found):
        blocks.append(found[whole:].reshape(1, -1))
    lines.append("hashes %s %d %d" % (name, width, len(found)))
    for block in blocks:
        bytes_of = block.copy().view(np.uint8).reshape(len(block), -1)
        hash_of = np.full(len(block), 0xCBF29CE484222325, np.uint64)
        for column in bytes_of.T:
            hash_of = (hash_of ^ column) * np.uint64(0x100000001B3)
        lines.extend("%x" % h for h in hash_of.tolist())


# ---- PyTorch ----------------------------------------------------------------

TORCH_SEEDS = [0, 1, 42, 2**31, 2**32 - 1, 2**32, 2**40 + 5, 2**63 - 1]


def full_words(count):
    return torch.empty(count, dtype=torch.int64).random_(-(2**63), None).numpy()


for seed in TORCH_SEEDS:
    torch.manual_seed(seed)
    words("torch-u64-%d" % seed, full_words(40))
    hashes("torch-u64-%d" % seed, full_words(2000))
    # 31 bits of each word, which shows that the words come one by one.
    words("torch-u31-%d" % seed, torch.randint(0, 2**31, (9,)).numpy())
    words("torch-double-%d" % seed, torch.rand(20, dtype=torch.float64).numpy())

for index, (low, high) in enumerate([(0, 1), (-0.25, 0.25), (-0.1767767, 0.1767767), (-3, 5), (2, 2), (1e30, 2e30)]):
    torch.manual_seed(index)
    for size in (1, 15, 16, 17, 100):
        words("torch-uniform-%d-%d" % (index, size), torch.empty(size).uniform_(low, high).numpy())
    hashes("torch-uniform-%d" % index, torch.empty(20000).uniform_(low, high).numpy())

for seed in (0, 1, 2**40 + 5):
    for size in list(range(0, 36)) + [47, 48, 49, 63, 64, 65, 127, 128, 129]:
        torch.manual_seed(seed)
        words("torch-normal-%d-%d" % (seed, size), torch.randn(size).numpy())
for seed, size in ((0, 2**18), (1, 100003), (2, 100016), (3, 4097)):
    torch.manual_seed(seed)
    hashes("torch-normal-%d" % seed, torch.randn(size).numpy())
torch.manual_seed(4)
hashes("torch-normal-single", np.concatenate([torch.randn(n).numpy() for n in [1, 2, 3, 5, 8, 13, 15] * 700]))

RANGES = [
    (0, 1),
    (0, 10),
    (1, 10),
    (-5, 5),
    (0, 2**31 - 1),
    (0, 2**31),
    (0, 2**32 - 1),
    (0, 2**32),
    (0, 2**32 + 1),
    (-7, 2**40),
    (-(2**62), 2**62),
    (-(2**63), 2**63 - 1),
]
for index, (low, high) in enumerate(RANGES):
    torch.manual_seed(index)
    words("torch-integer-%d" % index, torch.randint(low, high, (40,)).numpy())

torch.manual_seed(0)
for size in (0, 1, 2, 3, 10, 60, 64, 1000):
    words("torch-permutation-%d" % size, torch.randperm(size).numpy())
hashes("torch-permutation-8000", torch.randperm(8000).numpy())

# A story of mixed calls: which of them take the kept normal number, which
# leave it alone, and that a new seed drops it.
torch.manual_seed(3)
story = [
    torch.randn(5),  # keeps its sixth
    torch.randint(0, 10, (3,)),
    torch.randn(20),  # does not take it
    torch.rand(2, dtype=torch.float64),
    torch.randperm(10),
    torch.empty(4).uniform_(-1, 1),
    torch.randn(2),  # takes it, and keeps the second of the next pair
    torch.randn(15),
    torch.randn(16),
    torch.randn(1),
    torch.randn(0),
    torch.randn(33),
]
for index, part in enumerate(story):
    words("torch-story-%d" % index, part.numpy())
torch.manual_seed(3)
torch.randn(3)
torch.manual_seed(3)
words("torch-story-again", torch.randn(3).numpy())

# ---- NumPy ------------------------------------------------------------------

for seed in [0, 1, 2, 12345, 2**32 - 1, 2**32, 2**40 + 5, 2**63, 2**64 - 1]:
    words("numpy-u64-%d" % seed, np.random.default_rng(seed).bit_generator.random_raw(24))
    hashes("numpy-u64-%d" % seed, np.random.default_rng(seed).bit_generator.random_raw(5000))
    words("numpy-double-%d" % seed, np.random.default_rng(seed).random(16))
    words("numpy-normal-%d" % seed, np.random.default_rng(seed).normal(size=16))
    hashes("numpy-normal-%d" % seed, np.random.default_rng(seed).normal(size=2**20 if seed < 2 else 20000))
generator = np.random.default_rng(5)
words("numpy-story-0", generator.normal(0, 1, (3, 7)).astype(np.float32))
words("numpy-story-1", generator.random(5))
words("numpy-story-2", generator.normal(size=10))
words("numpy-story-3", generator.bit_generator.random_raw(3))
hashes("numpy-story-4", generator.normal(0, 1, (100, 60, 1)).astype(np.float32))

with open(OUT, "w", encoding="ascii") as stream:
    stream.write("\n".join(lines) + "\n")
