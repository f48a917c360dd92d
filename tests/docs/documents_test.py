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

| `train.precision` | what |
|---|---|
| `f16` | [nowhere](docs/none.md), [no heading](docs/glossary.md#none), [none here](#nothing), `src/core/none.h`, `grid.pipelines` |
| more | `runn.dir`, `schedule.kind=zb-h2`, `device.attention_beyond: theirs`, `reproducible: {data: many}`, `train.zero=3` |
| more | `make nothing`, `mindpipe-train trian`, `mindpipe-train data imprt`, `mindpipe-train plan --simulated` |
| more | [a package](https://pypi.org/project/none) |
| more | `--no-such`, `scripts/demo.sh --no-such` |

    mindpipe-train --config configs/none.yaml train.steps=3
    mindpipe-train --config configs/demo.yaml train.stepps=3
    mpirun -n 3 mindpipe-train --config configs/demo.yaml \\
      grid.pipeline=2

""" + "x" * 141 + "\n\n" + "word " * 901
FOUND = {"too_many_words": 1, "too_wide": 2, "too_long_sentences": 1, "broken_links": 3, "links_to_registries": 1,
         "unknown_files": 2, "unknown_settings": 3,
         "wrong_values": 5, "unknown_commands": 7, "unknown_options": 2}

SOUND = """# Sound

Short. See [the notes](README.md), [its part](docs/glossary.md#glossary), [this](#sound), `src/core/text.h`, `run.dir`, `grid`.
`tests/<folder>/<name>_test.cpp`, `trace.json`, `make test`, `schedule.kind=zb-h1`, `device.kernels=TABLE`, `--dry-run`, `-n`.

| `train.precision` | what |
|---|---|
| `f32` | all of it |

    mindpipe-train train --config configs/demo.yaml train.steps=3 | cat --no-such
    mpirun -n 4 mindpipe-train --config mine.yaml \\
      grid.pipeline=2 grid.data=2
"""

SHOWN = ["one 0123456789abcdef", "two 0123456789abcdef", "...", "three fedcba9876543210 in 1.5 s"]


def expect(condition, what):
    if not condition:
        sys.exit(f"the rules themselves: {what}")


def rules_find_what_breaks_them(tree):
    for rule in documents.RULES:
        complaints = list(rule(tree, "README.md", WRONG))
        expect(len(complaints) == FOUND[rule.__name__], f"{rule.__name__} finds {complaints}")
    sound = [complaint for rule in documents.RULES for complaint in rule(tree, "README.md", SOUND)]
    expect(not sound, f"a sound text is complained about: {sound}")


def ticks_are_of_their_tests():
    """A test that is not there, and one of something else."""
    class Named(documents.Tree):
        def __init__(self, table):
            self.root, self.table = ROOT, table

        def text(self, name):
            return self.table if name == "docs/comparison.md" else super().text(name)

    tree = Named((ROOT / "docs/comparison.md").read_text())
    expect(not list(documents.ticks_without_a_test(tree)), "the table as it is")
    for right, wrong in (("Simulate.NoOrderBeatsZeroBubble", "Simulate.NoOrderBeatsBubbles"),
                         ("Simulate.NoOrderBeatsZeroBubble", "Simulate.NoOrderBeats1f1b"),
                         ("TheProgram.NeedsNoPython", "TheProgram.WarnsOfAWarmUpThatIsLongerThanTheRun")):
        expect(right in tree.table, f"{right} is named")
        complaints = list(documents.ticks_without_a_test(Named(tree.table.replace(right, wrong))))
        expect(len(complaints) == 1, f"{wrong} in the place of {right}: {complaints}")


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
    expect(len(tree.program.settings) > 60 and "train" in tree.program.verbs and "demo" in tree.targets, "the program is heard")
    rules_find_what_breaks_them(tree)
    ticks_are_of_their_tests()
    outputs_are_compared()
    complaints = [f"{name}: {complaint}" for name in tree.documents() for rule in documents.RULES
                  for complaint in rule(tree, name, tree.text(name))]
    complaints += list(documents.ticks_without_a_test(tree)) + list(documents.lost_pointers(tree))
    complaints += documents.floors_of_another_list(tree)
    print("\n".join(complaints) or "all documents keep the rules")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
