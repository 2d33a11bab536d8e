"""Golden numbers for the operations: tests/golden/operations.golden.

Every case is OPERATION.N with the inputs x0, x1, x2, the gradient d that
comes back to the result, the result y and the gradients g0, g1, g2 of the
inputs. PyTorch computes in double from float32 inputs; what is stored is
rounded to float32 once, so that the tests measure our rounding, not its.

Run with the Python that has Debian's python3-torch.
"""
import os
import re

import torch

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operations.golden")
lines = ["# Written by operations.py with PyTorch; numbers in hexadecimal."]
counts = {}


def short(number):
    """The hex of a float without the zeros that a double would have."""
    if number == int(number) and abs(number) < 1000:
        return str(int(number))
    return re.sub(r"\.?0*p", "p", number.hex())


def write(name, tensor):
    tensor = tensor.detach().to(torch.float32)
    lines.append(" ".join(["tensor", name] + [str(d) for d in tensor.shape]))
    numbers = [short(float(x)) for x in tensor.reshape(-1)]
    for i in range(0, len(numbers), 8):
        lines.append(" ".join(numbers[i : i + 8]))


def case(name, run, inputs, **extra):
    """One forward and backward pass of run(*inputs)."""
    number = counts.get(name, 0)
    counts[name] = number + 1
    inputs = [x.double().requires_grad_() for x in inputs]
    y = run(*inputs)
    d = torch.randn(y.shape)
    y.backward(d.double())
    for i, x in enumerate(inputs):
        write(f"{name}.{number}.x{i}", x)
        write(f"{name}.{number}.g{i}", x.grad)
    for key, value in extra.items():
        write(f"{name}.{number}.{key}", torch.as_tensor(value))
    write(f"{name}.{number}.d", d)
    write(f"{name}.{number}.y", y)


torch.manual_seed(7)

for a, b in [
    ([1], [1]), ([1, 1], [1, 1]), ([1, 1], [1]), ([3, 4], [3, 4]), ([3, 4], []),
    ([5], [5]), ([2, 3, 4], [4]), ([2, 3, 4], [3, 4]), ([2, 3, 4], [2, 3, 4]),
    ([2, 2, 3, 5], [5]), ([2, 2, 3, 5], [3, 5]), ([2, 2, 3, 5], [2, 3, 5]),
    ([3, 1, 33], [1, 33]),
]:
    case("add", torch.add, [torch.randn(a), torch.randn(b)])

for shape, factor in [([], 2.0), ([1, 1], -1.0), ([7], 0.0), ([2, 3, 4, 5], -0.75)]:
    case("scale", lambda a, f=factor: f * a, [torch.randn(shape)], factor=factor)

PRODUCTS = [
    ([1, 1], [1, 1]), ([1, 5], [5, 1]), ([5, 1], [1, 6]), ([3, 4], [4, 5]),
    ([2, 3, 4], [4, 5]), ([2, 3, 4], [2, 4, 5]), ([1, 1, 1], [1, 1, 1]),
    ([2, 2, 3, 4], [2, 2, 4, 5]), ([2, 2, 3, 4], [4, 5]), ([7, 17], [17, 33]),
    ([13, 40], [40, 19]), ([4, 8, 8], [4, 8, 8]), ([6, 16], [16, 16]),
]
for a, b in PRODUCTS:
    case("matmul", torch.matmul, [torch.randn(a), torch.randn(b)])
for a, b in PRODUCTS:
    b = b[:-2] + [b[-1], b[-2]]
    case("transposed", lambda a, b: a @ b.transpose(-1, -2), [torch.randn(a), torch.randn(b)])

# One tensor as both operands: its gradient has two parts.
for shape in [[1, 1], [4, 3], [2, 3, 5]]:
    case("gram", lambda x: x @ x.transpose(-1, -2), [torch.randn(shape)])

for shape, out in [
    ([1], 1), ([1, 1], 1), ([5], 4), ([3, 5], 1), ([2, 3, 5], 4), ([2, 2, 3, 5], 4),
    ([9, 16], 17), ([2, 5, 8], 32),
]:
    into = shape[-1]
    case("linear", torch.nn.functional.linear,
         [torch.randn(shape), torch.randn(out, into), torch.randn(out)])
    case("linear", torch.nn.functional.linear, [torch.randn(shape), torch.randn(out, into)])

for table, shape in [([1, 1], [1]), ([5, 4], []), ([5, 4], [6]), ([3, 2], [2, 3]), ([6, 3], [2, 2, 4])]:
    index = torch.randint(0, table[0], shape)
    case("embedding", lambda t, i=index: torch.nn.functional.embedding(i, t),
         [torch.randn(table)], index=index)

for shape, order in [([1, 1], [0]), ([4], [3, 3, 0]), ([4, 3], [2, 0, 2, 3, 2]), ([3, 2, 2, 2], [1, 2])]:
    case("rows", lambda x, o=order: x[o], [torch.randn(shape)], order=order)

for shape in [[1, 1, 1], [2, 3, 4], [3, 7, 5], [1, 16, 33]]:
    case("mean", lambda x: x.mean(1), [torch.randn(shape)])

# A bias after a reshape, so that there is something to go back through.
for shape, other in [([1], [1, 1, 1]), ([2, 6], [3, 4]), ([3, 4], [12]), ([2, 3, 4], [4, 3, 1, 2])]:
    case("reshape", lambda x, b, s=other: x.reshape(s) + b,
         [torch.randn(shape), torch.randn(other[-1:])])

with open(OUT, "w") as file:
    file.write("\n".join(lines) + "\n")
