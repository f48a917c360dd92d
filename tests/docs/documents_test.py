#!/usr/bin/env python3
"""documents_test.py PROGRAM: the documentation keeps its rules, and names only what is there; the rules find what breaks them."""
import pathlib
import sys
import tempfile

import commands
import documents

ROOT = pathlib.Path(__file__).resolve().parents[2]

WRONG = """# Wrong

A sentence that goes on and on with many small words until nobody who reads it still knows how it had begun or why it is there at all.

[nowhere](docs/none.md) and `src/core/none.h`, `grid.pipelines`, `make nothing`, `mindpipe-train trian`.

    mindpipe-train --config configs/none.yaml train.stepps=3

""" + "x" * 141 + "\n\n" + "word " * 901

SOUND = """# Sound

Short. See [the notes](README.md), `src/core/text.h`, `tests/<folder>/<name>_test.cpp`, `run.dir`, `grid`, `trace.json`, `make test`.

    mindpipe-train train --config configs/demo.yaml train.steps=3
"""

SHOWN = ["one 0123456789abcdef", "two 0123456789abcdef", "...", "three fedcba9876543210 in 1.5 s"]


def expect(condition, what):
    if not condition:
        sys.exit(f"the rules themselves: {what}")


def rules_find_what_breaks_them(tree):
    found = {rule.__name__: list(rule(tree, "README.md", WRONG)) for rule in documents.RULES}
    for name, complaints in found.items():
        expect(complaints, f"{name} finds nothing in a text that breaks it")
    expect(len(found["unknown_settings"]) == 2, "two settings are unknown")
    expect(len(found["unknown_files"]) == 2, "two files are unknown")
    expect(len(found["unknown_commands"]) == 2, "a target and a verb are unknown")
    sound = [complaint for rule in documents.RULES for complaint in rule(tree, "README.md", SOUND)]
    expect(not sound, f"a sound text is complained about: {sound}")


def outputs_are_compared():
    printed = "zero\none aaaaaaaaaaaaaaaa\ntwo  aaaaaaaaaaaaaaaa\nmore\nthree bbbbbbbbbbbbbbbb in 20.25 s\n"
    expect(not commands.missing_lines(SHOWN, printed), "the same output on another machine")
    expect(commands.missing_lines(SHOWN, printed.replace("two  a", "two  b")), "a hash that should be equal")
    expect(commands.missing_lines(SHOWN, printed.replace("b" * 16, "a" * 16)), "a hash that should differ")
    expect(commands.missing_lines(["step 7"], "step 8\n"), "another number")
    expect(not commands.missing_lines(["a ... d"], "a b c d\n"), "a rest of a line")
    with tempfile.TemporaryDirectory() as folder:
        block = next(commands.blocks_of("<!-- run -->\n    false\n    echo a\n"))
        expect(commands.run(block, folder, {"PATH": "/usr/bin:/bin"}, {}), "a command that fails")


def main():
    tree = documents.Tree(ROOT, sys.argv[1])
    expect(len(tree.settings) > 60 and "train" in tree.verbs and "demo" in tree.targets, "the program is heard")
    rules_find_what_breaks_them(tree)
    outputs_are_compared()
    complaints = [f"{name}: {complaint}" for name in tree.documents() for rule in documents.RULES
                  for complaint in rule(tree, name, tree.text(name))]
    complaints += list(documents.ticks_without_a_test(tree)) + list(documents.lost_pointers(tree))
    print("\n".join(complaints) or "all documents keep the rules")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
