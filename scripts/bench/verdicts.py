"""What the design demands of the CPU, and what a bench's figures say of it. No program is run here."""
import math
from collections import namedtuple

from machine import PAIRS, TILES

# `most`: the figure must not be above `bound`, else not below it. `bound`: a number, or a function of the machine
# that gives one and says why. `tiles`: only processors with tiles are held to it.
Must = namedtuple("Must", "name what bound most unit tiles", defaults=(False,))

# `instructions`: the set that our kernels took. `packed_weights`: whether they keep weights packed, which takes memory.
Machine = namedtuple("Machine", "instructions packed_weights")


def bound_of_bf16(machine):
    """GPT-2's rate in bf16 over PyTorch's: the better the unit, the more is ours to win."""
    if machine.instructions == TILES:
        return 1.3, "1.3 x with AMX, 1.2 x with AVX512_BF16: here is AMX"
    if machine.instructions == PAIRS:
        return 1.2, "1.3 x with AMX, 1.2 x with AVX512_BF16: here is AVX512_BF16"
    return 1.2, "1.2 x as with AVX512_BF16: nothing is demanded of %s by name" % machine.instructions


def bound_of_memory(machine):
    if machine.packed_weights:
        return 0.8, "0.75 x, 0.8 x with packed weights: here they are packed"
    return 0.75, "0.75 x, 0.8 x with packed weights: here they are not"


MUSTS = (
    Must("speed f32", "GPT-2 124M, f32: tokens/s of PyTorch's", 1.3, False, "x"),
    Must("speed bf16", "GPT-2 124M, bf16: tokens/s of PyTorch's", bound_of_bf16, False, "x"),
    Must("memory f32", "GPT-2 124M, f32: peak memory of PyTorch's", bound_of_memory, True, "x"),
    Must("memory bf16", "GPT-2 124M, bf16: peak memory of PyTorch's", bound_of_memory, True, "x"),
    Must("start", "start to first step", 3, True, "s"),
    Must("step f32", "whole step, of the rate of our own products, f32", 0.6, False, "%"),
    Must("step bf16", "whole step, of the rate of our own products, bf16", 0.6, False, "%"),
    Must("tiles", "large bf16 products, worst form, of the real peak", 0.45, False, "%", True),
    Must("onednn", "large bf16 products, worst form, of oneDNN's rate", 1.2, False, "x", True),
    Must("one row", "one row, bf16 weights read, of a copy's bandwidth", 0.85, False, "%", True),
    Must("data f32", "two ranks, data, f32, of one rank with two threads", 0.85, False, "x"),
    Must("data bf16", "two ranks, data, bf16", 0.85, False, "x"),
    Must("tensor f32", "two ranks, tensor, f32", 0.85, False, "x"),
    Must("tensor bf16", "two ranks, tensor, bf16", 0.85, False, "x"),
    Must("pipeline f32", "two ranks, pipeline, m = 32, f32", 0.85, False, "x"),
    Must("pipeline bf16", "two ranks, pipeline, m = 32, bf16", 0.85, False, "x"),
    Must("shards", "logical shards = degrees, of plain", 0.97, False, "x"),
    Must("peer llm.c", "tokens/s of llm.c's", 10, False, "x"),
    Must("waiting", "rate of a rank that waits in the background", 0.97, False, "x"),
    *(Must("%s %d" % (name, ranks), "%s, %d rank%s" % (what, ranks, "s" * (ranks > 1)), bound, most, unit)
      for ranks in (1, 2) for name, what, bound, most, unit in (
          ("save", "a checkpoint's save, of the rate of dd with fsync", 0.8, False, "x"),
          ("load", "a checkpoint's load, of the rate of dd from the device", 0.8, False, "x"),
          ("background_cost", "what saves in the background cost, of what they cost in the foreground", 0.35,
           True, "x"),
          ("stood_still", "how long training stands still for them, of their time in the foreground", 0.1,
           True, "x"))),
    *(Must("%s %s %s" % (kind, must, precision), "%s, %s: %s of PyTorch's" % (name, precision, what), bound, most,
           "x")
      for kind, name in (("bert", "BERT-base"), ("transformer", "transformer-base"), ("vit", "ViT-base"))
      for must, what, bounds, most in (("speed", "rate", {"f32": 1.1, "bf16": 1.3}, False),
                                       ("memory", "peak memory", {"f32": 0.8, "bf16": 0.8}, True))
      for precision, bound in bounds.items()),
    *(Must("%s %s %s" % (kind, must, precision), "%s, %s: %s of PyTorch's" % (name, precision, what), bound, most, "x")
      for kind, name, speed in (("evolved", "Evolved Transformer", 1.0), ("wide_resnet", "WRN-16-4", 0.8))
      for must, what, bound, most in (("speed", "rate", speed, False), ("memory", "peak memory", 0.9, True))
      for precision in ("f32", "bf16")),
    Must("order made", "start to first step, order of 50 million documents made", 60, True, "s"),
    Must("order kept", "a start with the order's file, beyond a plain one", 2, True, "s"),
    Must("order memory", "the order in memory, 4 ranks, of its file (a second copy: 2)", 1.25, True, "x"),
    Must("tokens", "English and code to tokens, one core, slowest tokenizer", 10, False, "MB/s"),
    Must("tokens fast peer", "its rate, of tokenizers where that reaches 8 MB/s", 2, False, "x"),
    Must("tokens slow peer", "its rate, of tokenizers where that is below 8 MB/s", 3, False, "x"),
    Must("tokens threads", "its rate on two threads, of that on one", 1.6, False, "x"),
    Must("tokens letter", "1 MB of one letter, of its rate", 1 / 3, False, "x"),
    Must("tokens spaces", "10 MB of spaces, of its rate", 1 / 3, False, "x"),
    Must("tokenizer trained", "2,000 merges on 20 MB, one thread", 10, True, "s"),
    Must("import memory", "memory of an import of 2 GB", 200, True, "MB"),
    Must("recording", "the trace's recording, of the shortest actions", 0.01, True, "%"),
    *(Must("folding %s %d" % (name, place), "sums of %d %% folded, over %s" % (share, what), bounds[place], False, "x")
      for name, what, bounds in (("1f1b", "1f1b unfolded", (1.28, 1.35, 1.33)), ("unfolded", "itself unfolded", (1.15, 1.24, 1.26)),
                                 ("one piece", "one piece, first come", (1.12, 1.12, 1.12)))
      for place, share in enumerate((20, 28, 44))),
    Must("noise", "the noise scale, of a step that measures it", 0.005, True, "%"),
)
NEVER = {
    "shards": "not measurable here: every run is cut so, there is none to hold it against",
    "peer llm.c": "not measured: no part runs it"
}


def number(value, unit):
    return "%.*f %%" % (0 if value >= 0.1 else 2, 100 * value) if unit == "%" else "%.2f %s" % (value, unit)


def bound_of(must, machine):
    """The bound for this machine, and why it is this one where it could be another."""
    return must.bound(machine) if callable(must.bound) else (must.bound, "")


def distance(bound, most, value):
    """How far from the bound, as a part of it; positive: missed."""
    return (value - bound) / bound * (1 if most else -1)


def verdict(must, bound, value, machine):
    """`value`: the figure, or a sentence that says why there is none, or none: its part was left out."""
    if must.name in NEVER:
        return NEVER[must.name]
    if value is None:
        return "not measured: --parts or --precisions left it out"
    if isinstance(value, str):
        return value
    if must.tiles and machine.instructions != TILES:
        return "no must here: it is one of processors with AMX"
    if not math.isfinite(value):
        return "missed: no figure came of it"
    far = distance(bound, must.most, value)
    return "met" if far <= 0 else "missed by %.1f %%" % (100 * far)


def judge(figures, machine, against=None, musts=MUSTS):
    """Of figures by the names of `musts`: a row for each must, as they are written to the JSON. `against`: by the
    same names the peer that a figure is a ratio to."""
    strange = set(figures) - {must.name for must in musts}
    if strange:
        raise KeyError("no must is called " + ", ".join(sorted(strange)))
    rows = []
    for must in musts:
        value, (bound, why) = figures.get(must.name), bound_of(must, machine)
        rows.append({
            "name": must.name, "what": must.what,
            "measured": value if isinstance(value, (int, float)) else None, "unit": must.unit, "must": bound,
            "why": why, "bound": "at most" if must.most else "at least",
            "against": (against or {}).get(must.name, ""), "verdict": verdict(must, bound, value, machine)
        })
    return rows


def judge_alone(figures):
    """The rows of a part that is measured by itself; its bounds are those of every machine."""
    return [row for row in judge(figures, Machine("", False)) if row["name"] in figures]


def table(rows):
    """Lines for the eye; of what was measured the peer and the reason for the bound stand behind the verdict."""
    lines = ["%-52s %10s %19s  %s" % ("", "measured", "must", "verdict")]
    for row in rows:
        measured = "-" if row["measured"] is None else number(row["measured"], row["unit"])
        notes = ["against " + row["against"]] if row["against"] else []
        notes += [row["why"]] if row["why"] and row["measured"] is not None else []
        lines.append(
            "%-52s %10s %19s  %s" %
            (row["what"], measured, row["bound"] + " " + number(row["must"], row["unit"]),
             row["verdict"] + (" (%s)" % "; ".join(notes) if notes else "")))
    return lines


def missed(rows):
    return [row["name"] for row in rows if row["verdict"].startswith("missed")]


def summary(rows):
    met, short = sum(row["verdict"] == "met" for row in rows), missed(rows)
    text = "musts: %d met, %d missed" % (met, len(short)) + (" (%s)" % ", ".join(short) if short else "")
    return text + ", %d without a verdict" % (len(rows) - met - len(short))
