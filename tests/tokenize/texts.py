"""Texts that tokenizers are compared on: every assigned character of Unicode 14, scripts in turn, spaces, emoji, code."""
import gzip
import pathlib
import random
import struct
import unicodedata

TREE = pathlib.Path(__file__).resolve().parents[2]


def assigned():
    """Characters that Python's table assigns, but for surrogates and private use."""
    return [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")]


def every_character():
    """Each alone, between letters and in runs of its neighbours."""
    characters = assigned()
    texts = ["".join(characters[at:at + 64]) for at in range(0, len(characters), 64)]
    texts += [" ".join(characters[at:at + 64]) for at in range(0, len(characters), 64)]
    texts += ["a".join(characters[at:at + 64]) for at in range(0, len(characters), 64)]
    return texts + [character * 3 for character in characters] + characters


def spaces():
    texts = [space * count for space in (" ", "\n", "\t", "\r\n", "\u00a0", "\u3000") for count in (1, 2, 3, 7, 100, 1000, 10000)]
    return texts + ["a" + text + "b" for text in texts] + ["\u180e a\u180e\u180e b", " \n x\r\n\r\n  y \t z  ", ""]


def peculiar():
    return ["\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd",
            "e\u0301\u0323 a\u030a \u0915\u094d\u0937",
            "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd 123",
            "\u4f60\u597d\uff0c\u4e16\u754c\u3002 \u3053\u3093\u306b\u3061\u306f \uc548\ub155",
            "I'm you'll they'VE we'd It'S 's 'S 'l",
            "x=1234567890; y=3.14159e-10 \u00b2\u00b3\u00bd \u0661\u0662\u0663 \u2167",
            "<|endoftext|>a<|endoftext|> <s>b</s>[MASK] [CLS]<mask>",
            "\u0130stanbul \u1e9e \u03a3\u03a3 \ufb01 \u00c5ngstr\u00f6m \u1e69",
            "don't do not. Hello , world ! It 's",
            "caf\u00e9 na\u00efve \u2014 \u201cquoted\u201d \u2026 $5 + \u20ac6 ^ `x` ~ |", "\x00\x01\x7f\x85\ufffd\ufeff"]


def drawn(count, seed):
    """Words drawn from all of Unicode's blocks, with spaces and marks between them."""
    draw = random.Random(seed)
    characters = assigned()
    texts = []
    for _ in range(count):
        block = draw.randrange(len(characters) - 200)
        near = characters[block:block + 200] + list("abc ABC 019 .,'\n  \t-_")
        texts.append("".join(draw.choice(near) for _ in range(draw.randrange(1, 200))))
    return texts


def english():
    return (TREE / "data/alice.txt").read_text()


def code():
    files = sorted((TREE / "src").rglob("*.cpp")) + sorted((TREE / "scripts").rglob("*.py"))
    return "".join(file.read_text() for file in files)


def mixed():
    return "\n".join(peculiar() + drawn(300, 7))


def documents(folder, pattern, megabytes):
    """Texts of files of this machine that are UTF-8, of so many megabytes in all."""
    chosen, size = [], 0
    for path in sorted(pathlib.Path(folder).rglob(pattern)):
        try:
            data = (gzip.open if path.suffix == ".gz" else open)(path, "rb").read(400_000)
            text = data.decode()
        except (OSError, UnicodeDecodeError, EOFError):
            continue
        if len(data) > 500 and path.is_file() and not path.is_symlink():
            chosen.append(text)
            size += len(data)
        if size >= megabytes * 1e6:
            break
    return chosen


def english_documents(megabytes):
    chosen = [english()] + documents("/usr/share/doc", "*.txt.gz", megabytes) + documents("/usr/share/doc", "*[a-z]", megabytes)
    return cut(chosen, megabytes)


def code_documents(megabytes):
    return cut([code()] + documents("/usr/lib/python3", "*.py", megabytes) + documents("/usr/include", "*.h", megabytes), megabytes)


def mixed_documents(megabytes):
    """Words of all scripts, each document of one; and what Perl and Python know of Unicode."""
    return cut(documents("/usr/share/perl", "*.pl", 1) + drawn(int(megabytes * 4000), 11), megabytes)


def cut(chosen, megabytes):
    size, some = 0, []
    for text in chosen:
        if size >= megabytes * 1e6:
            break
        some.append(text)
        size += len(text.encode())
    return some


def packed(texts):
    """Texts as tests/tokenize/ids_of_texts.cpp reads them."""
    return b"".join(struct.pack("<I", len(data)) + data for data in (text.encode() for text in texts))


def lists_in(data):
    """Lists of ids as tests/tokenize/ids_of_texts.cpp writes them."""
    lists, at = [], 0
    while at < len(data):
        count = struct.unpack_from("<I", data, at)[0]
        lists.append(list(struct.unpack_from(f"<{count}i", data, at + 4)))
        at += 4 + 4 * count
    return lists
