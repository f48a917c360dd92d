"""Random tokens in the format that mindpipe-train reads."""
import array
import random
import struct


def write_tokens(prefix, count, below=50257):
    """One document of random tokens from 0 to below - 1 (at most 65,535) as PREFIX.bin and PREFIX.idx."""
    draw = random.Random(1)
    with open(prefix + ".bin", "wb") as file:
        array.array("H", (draw.randrange(below) for _ in range(count))).tofile(file)
    with open(prefix + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQiqqq", 1, 8, 1, 2, count, 0, 0, 1))
