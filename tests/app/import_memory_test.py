#!/usr/bin/env python3
# import_memory_test.py PROGRAM SIZE: an import's memory does not grow with its files, which are made here: of 2 GB where SIZE is large.
"""At most 200 MB are ever resident of an import: of small files so much less that a file held in memory would show."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM, SIZE = sys.argv[1:]
TOKENIZER = ROOT / "tests/golden/tokenizers/gpt2.json"
MB = 1_000_000


def repeated(block, size, path):
    """A packed file of `size` bytes, the block again and again, each time as a member of its own."""
    packed = gzip.compress(block, 1)
    with open(path, "wb") as file:
        for _ in range(0, size, len(block)):
            file.write(packed)
    return path


def lines_of(text, times=1):
    return (json.dumps({"text": text}) + "\n").encode() * times


def raw_documents(size, path, tokens=100):
    """Raw tokens of 16 bits, in documents that end in the tokenizer's end."""
    end = next(token["id"] for token in json.loads(TOKENIZER.read_text())["added_tokens"])
    document = b"\x05\x00" * tokens + end.to_bytes(2, "little")
    with open(path, "wb") as file:
        for _ in range(0, size, 1000 * len(document)):
            file.write(document * 1000)
    return path


def peak_of_import(path, folder, *options):
    """MB that were resident at most."""
    peak = folder / "peak"
    subprocess.run([sys.executable, ROOT / "tests/peak_memory.py", peak, PROGRAM, "data", "import", path, "--output",
                    folder / "out", *options], check=True, stdout=subprocess.DEVNULL)
    for made in folder.glob("out.*"):
        made.unlink()
    path.unlink()
    return int((folder / "peak.0").read_text()) / MB


def cases(folder):
    """(what, file, options, most MB)."""
    book = (ROOT / "data/alice.txt").read_bytes()
    tokenizer = ["--tokenizer", TOKENIZER]
    if SIZE == "small":
        yield "JSON lines", repeated(lines_of("a line of text " * 40, 1000), 60 * MB, folder / "a.jsonl.gz"), [], 45
        yield "tokens of others", raw_documents(60 * MB, folder / "b.bin"), tokenizer, 45
        return
    yield "2 GB of JSON lines", repeated(lines_of("a line of text " * 40, 10000), 2000 * MB, folder / "a.jsonl.gz"), [], 200
    yield "many short documents", repeated(lines_of("a b", 100_000), 100 * MB, folder / "c.jsonl.gz"), [*tokenizer, "--threads", "16"], 200
    yield "a long text", repeated(book, 200 * MB, folder / "d.txt.gz"), [*tokenizer, "--threads", "16"], 200
    yield "a text of one line", repeated(b"one word and another ", 100 * MB, folder / "e.txt.gz"), tokenizer, 200
    yield "lines of 15 MB", repeated(lines_of("a b " * 3_750_000), 60 * MB, folder / "f.jsonl.gz"), [], 200
    yield "lines of 15 MB and a tokenizer", repeated(lines_of("a b " * 3_750_000), 60 * MB, folder / "g.jsonl.gz"), tokenizer, 200
    yield "words of 4 MB", repeated(lines_of("a" * 4 * MB), 16 * MB, folder / "h.jsonl.gz"), tokenizer, 200
    yield "documents of tokens of others", raw_documents(300 * MB, folder / "j.bin"), tokenizer, 200


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for what, path, options, most in cases(folder):
            peak = peak_of_import(path, folder, *options)
            wrong += peak > most
            print(f"{what}: {peak:.0f} MB at the peak (at most {most}){': too much' if peak > most else ''}", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
