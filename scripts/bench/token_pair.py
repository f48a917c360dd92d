"""Random samples in the formats that mindpipe-train reads."""
import array
import itertools
import os
import random
import struct


def write_tokens(prefix, count, below=50257, documents=1):
    """Documents of `count` random tokens each, from 0 to below - 1 (at most 65,535), as PREFIX.bin and
    PREFIX.idx."""
    draw = random.Random(prefix)
    with open(prefix + ".bin", "wb") as file:
        array.array("H", (draw.randrange(below) for _ in range(count * documents))).tofile(file)
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, documents, documents + 1))
        array.array("i", itertools.repeat(count, documents)).tofile(file)
        array.array("q", range(0, 2 * count * documents, 2 * count)).tofile(file)
        array.array("q", range(documents + 1)).tofile(file)


def write_pictures(path, count, channels, side, classes):
    """Random pictures as IDX files; `path` holds images-idx4."""
    draw = random.Random(1)
    with open(path, "wb") as file:
        file.write(struct.pack(">5i", 0x804, count, channels, side, side))
        file.write(os.urandom(count * channels * side * side))
    with open(path.replace("images-idx4", "labels-idx1"), "wb") as file:
        file.write(struct.pack(">2i", 0x801, count))
        file.write(bytes(draw.randrange(min(256, classes)) for _ in range(count)))
