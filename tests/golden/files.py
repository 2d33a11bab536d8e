"""Models in the safetensors format, as PyTorch users exchange them.

positions-matter.safetensors   a model as the safetensors library writes it
book.safetensors               what attn_save must write, byte for byte
files.golden                   what the first model answers

The format is written here by hand, since Debian has no package of the
library. Where Python finds it (pip install safetensors), it must read and
write the very same bytes.

Run with the Python that has Debian's python3-torch.
"""

import json
import os
import struct

import torch

import models

try:
    import safetensors.torch as library
except ImportError:
    library = None

FOLDER = os.path.dirname(os.path.abspath(__file__))


def entries(tensors):
    """The header's entry for each tensor, with the data one after the other."""
    header, begin = {}, 0
    for name, tensor in tensors:
        end = begin + 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [begin, end]}
        begin = end
    return header


def encode(tensors, metadata):
    """The bytes of a file: length, header padded to 8 bytes, numbers."""
    header = {"__metadata__": metadata} if metadata else {}
    header.update(entries(tensors))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    data = b"".join(tensor.detach().contiguous().numpy().astype("<f4").tobytes() for _, tensor in tensors)
    return struct.pack("<Q", len(text)) + text + data


def keep(name, content):
    with open(os.path.join(FOLDER, name), "wb") as file:
        file.write(content)


def peers_model():
    """Untrained numbers serve as well as trained ones."""
    torch.manual_seed(7)
    model = models.PositionsMatter(True)
    # The library orders tensors of one type by name.
    content = encode(sorted(model.state_dict().items()), None)
    if library is not None:
        assert library.save(model.state_dict()) == content
    keep("positions-matter.safetensors", content)
    tokens, _ = models.sequences(8, 8, 3)
    with torch.no_grad():
        logits = model(tokens)
    lines = [f"tensor logits {logits.shape[0]} {logits.shape[1]}"]
    lines += [" ".join(float(x).hex() for x in row) for row in logits]
    keep("files.golden", ("\n".join(lines) + "\n").encode())


def books_model():
    """Shapes of every rank, a name to be quoted, numbers that are hard to
    write as text. The test makes the same."""
    special = [0.0, -0.0, 1.5, float("inf"), float("-inf"), 2.0**-149, 3.4028234663852886e38]
    tensors = [
        ("b.weight", torch.arange(6, dtype=torch.float32).reshape(2, 3) / 4),
        ("a \"name\" – ü", torch.tensor(special)),
        ("scalar", torch.tensor(-1.25)),
        ("rank.4", torch.arange(1100, dtype=torch.float32).reshape(1, 2, 11, 50)),
    ]
    content = encode(tensors, {"format": "pt"})
    if library is not None:
        for name, tensor in library.load(content).items():
            assert torch.equal(tensor, dict(tensors)[name]), name
    keep("book.safetensors", content)


peers_model()
books_model()
print("safetensors itself agrees" if library else "without the library safetensors to ask")
