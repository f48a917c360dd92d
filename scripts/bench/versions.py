#!/usr/bin/env python3
"""An older build of the program against this one, in turn: whether a change has cost speed. With --old-settings and
--new-settings, two ways to run one build: what a schedule is worth.

    versions.py OLD [--binary build/mindpipe-train] [--only f32,data] [--repeats 6] [--steps 6] [--subnets 96]
    versions.py build/mindpipe-train --only v --old-settings schedule.kind=1f1b --new-settings schedule.kind=zb-v

Each repeat runs old, new, new, old, so that a machine that grows slower or faster meanwhile favours none, and compares the medians
of their steps. A cell's figure is the median over its repeats; below 0.99 the new program is slower. Behind it stands an interval
that has the true median in 95 of 100 measurements: from one repeat's ratio to another's, by their order alone. Fewer than six
repeats have none. The cells: steps of GPT-2's width on one rank with two threads in f32 and in bf16, and in f32 on two ranks as
data, tensor and pipeline; lanes and stages: subnets of configs/supernet-tiny.yaml, four times as wide, on two ranks, whose mean
seconds are compared, because subnets end in bursts; v: eight layers on two stages with eight micro-batches, which a V can cut into
four pieces (only where it is named)."""
import argparse
import math
import os
import statistics
import sys

import supernet
from layouts import DEEP, FLAT
from running import ROOT, run_mindpipe

SLOWER, SURE = 0.99, 0.95
CELLS = {  # precision, ranks, sequence, batch, micro-batch, settings
    "f32": ("f32", 1, 1024, 8, 4, FLAT),
    "bf16": ("bf16", 1, 1024, 8, 4, FLAT),
    "data": ("f32", 2, 1024, 8, 4, {**FLAT, "grid.data": 2, "reproducible.data": 2}),
    "tensor": ("f32", 2, 1024, 8, 4, {**FLAT, "grid.tensor": 2, "reproducible.tensor": 2}),
    "pipeline": ("f32", 2, 256, 32, 1, {**DEEP, "grid.pipeline": 2}),
}
WARM_UP = 16  # subnets: a window of theirs
SUBNETS = {"model.width": 256, "train.precision": "f32", "device.threads": 1}
SUPERNETS = {  # settings of two ranks
    "lanes": {**SUBNETS, "grid.supernet": 2, "grid.pipeline": 1},
    "stages": {**SUBNETS, "grid.pipeline": 2},
}
NAMED_ONLY = {"v": ("f32", 2, 256, 8, 1, {**DEEP, "model.layers": 8, "grid.pipeline": 2})}


def settings_of(text):
    return dict(one.split("=", 1) for one in text.split())


def subnet_of(options, binary, cell, more):
    """The seconds of a subnet in one run."""
    settings = {**SUPERNETS[cell], "train.steps": options.subnets, **settings_of(more)}
    one = argparse.Namespace(**{**vars(options), "binary": binary})
    return 1 / supernet.rate(supernet.run(one, settings, supernet.TINY, ranks=2)[0], WARM_UP)


def step_of(options, binary, cell, more):
    """The median step of one run, in seconds."""
    if cell in SUPERNETS:
        return subnet_of(options, binary, cell, more)
    precision, ranks, sequence, batch, micro_batch, settings = {**CELLS, **NAMED_ONLY}[cell]
    settings = {**settings, **settings_of(more)}
    one = argparse.Namespace(**{**vars(options), "binary": binary})
    run = run_mindpipe(one, precision, batch, micro_batch, 2 // ranks, ranks=ranks, sequence=sequence,
                       vocabulary=settings["model.vocabulary"], extra=settings)
    return statistics.median(run["step_seconds"])


def ratio_of(options, cell):
    """How many times as fast the new program is, in one repeat."""
    old, new = (options.old, cell, options.old_settings), (options.binary, cell, options.new_settings)
    steps = [step_of(options, *one) for one in (old, new, new, old)]
    return (steps[0] + steps[3]) / (steps[1] + steps[2])


def interval_of(ratios):
    """The least and the greatest of those ratios that have the median between them with a probability of SURE; none of too few.
    Each ratio lies below the median or above it as a coin falls, whatever else its distribution is."""
    count, ratios = len(ratios), sorted(ratios)
    chance_of = lambda below: sum(math.comb(count, few) for few in range(below + 1)) / 2**count
    left_out = [few for few in range(count // 2) if 2 * chance_of(few) <= 1 - SURE]
    return (ratios[left_out[-1]], ratios[-1 - left_out[-1]]) if left_out else None


def line_of(cell, ratios):
    """What is said of a cell: the median of its repeats, its interval and all of them."""
    between = interval_of(ratios)
    sure = "95 %%: %.3f to %.3f" % between if between else "too few for an interval"
    return "%-9s new at %.3f of old's speed, %s (%s)" % (cell, statistics.median(ratios), sure, ", ".join(
        "%.3f" % ratio for ratio in sorted(ratios)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="mindpipe-train of the build to compare with")
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--only", default=",".join({**CELLS, **SUPERNETS}), help="cells, with commas")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--subnets", type=int, default=96, help="of a supernet's run")
    parser.add_argument("--old-settings", default="", help="settings of the old program's runs, with spaces between")
    parser.add_argument("--new-settings", default="", help="settings of the new program's runs")
    options = parser.parse_args()
    options.config, options.set = os.path.join(ROOT, "configs", "gpt2-124m.yaml"), []
    options.runs = os.path.join(ROOT, "runs", "bench")
    os.makedirs(options.runs, exist_ok=True)
    known, slower = {**CELLS, **SUPERNETS, **NAMED_ONLY}, False
    for cell in options.only.split(","):
        if cell not in known:
            parser.error("there is no cell %r (expected %s)" % (cell, ", ".join(known)))
        ratios = [ratio_of(options, cell) for _ in range(options.repeats)]
        slower = slower or statistics.median(ratios) < SLOWER
        print(line_of(cell, ratios), flush=True)
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
