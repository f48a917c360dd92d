#!/usr/bin/env python3
"""An older build of the program against this one, in turn: whether a change has cost speed. With --old-settings and
--new-settings, two ways to run one build: what a schedule is worth.

    versions.py OLD [--binary build/mindpipe-train] [--only f32,data] [--repeats 5] [--steps 6]
    versions.py build/mindpipe-train --only v --old-settings schedule.kind=1f1b --new-settings schedule.kind=zb-v

Each repeat runs old, new, new, old, so that a machine that grows slower or faster meanwhile favours none, and compares the medians
of their steps. A cell's figure is the median over its repeats; below 0.99 the new program is slower. The cells: steps of GPT-2's
width on one rank with two threads in f32 and in bf16, and in f32 on two ranks as data, tensor and pipeline; v: eight layers on two
stages with eight micro-batches, which a V can cut into four pieces (only where it is named)."""
import argparse
import os
import statistics
import sys

from layouts import DEEP, FLAT
from running import ROOT, run_mindpipe

SLOWER = 0.99
CELLS = {  # precision, ranks, sequence, batch, micro-batch, settings
    "f32": ("f32", 1, 1024, 8, 4, FLAT),
    "bf16": ("bf16", 1, 1024, 8, 4, FLAT),
    "data": ("f32", 2, 1024, 8, 4, {**FLAT, "grid.data": 2, "reproducible.data": 2}),
    "tensor": ("f32", 2, 1024, 8, 4, {**FLAT, "grid.tensor": 2, "reproducible.tensor": 2}),
    "pipeline": ("f32", 2, 256, 32, 1, {**DEEP, "grid.pipeline": 2}),
}
NAMED_ONLY = {"v": ("f32", 2, 256, 8, 1, {**DEEP, "model.layers": 8, "grid.pipeline": 2})}


def step_of(options, binary, cell, more):
    """The median step of one run, in seconds."""
    precision, ranks, sequence, batch, micro_batch, settings = {**CELLS, **NAMED_ONLY}[cell]
    settings = {**settings, **dict(one.split("=", 1) for one in more.split())}
    one = argparse.Namespace(**{**vars(options), "binary": binary})
    run = run_mindpipe(one, precision, batch, micro_batch, 2 // ranks, ranks=ranks, sequence=sequence,
                       vocabulary=settings["model.vocabulary"], extra=settings)
    return statistics.median(run["step_seconds"])


def ratio_of(options, cell):
    """How many times as fast the new program is, in one repeat."""
    old, new = (options.old, cell, options.old_settings), (options.binary, cell, options.new_settings)
    steps = [step_of(options, *one) for one in (old, new, new, old)]
    return (steps[0] + steps[3]) / (steps[1] + steps[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="mindpipe-train of the build to compare with")
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--only", default=",".join(CELLS), help="cells, with commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--old-settings", default="", help="settings of the old program's runs, with spaces between")
    parser.add_argument("--new-settings", default="", help="settings of the new program's runs")
    options = parser.parse_args()
    options.config, options.set = os.path.join(ROOT, "configs", "gpt2-124m.yaml"), []
    options.runs = os.path.join(ROOT, "runs", "bench")
    os.makedirs(options.runs, exist_ok=True)
    slower = False
    for cell in options.only.split(","):
        if cell not in {**CELLS, **NAMED_ONLY}:
            parser.error("there is no cell %r (expected %s)" % (cell, ", ".join({**CELLS, **NAMED_ONLY})))
        ratios = [ratio_of(options, cell) for _ in range(options.repeats)]
        median = statistics.median(ratios)
        slower = slower or median < SLOWER
        print("%-9s new at %.3f of old's speed (%s)" % (cell, median, ", ".join("%.3f" % ratio for ratio in sorted(ratios))),
              flush=True)
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
