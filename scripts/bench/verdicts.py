"""What the design demands of the CPU, and what a bench's figures say of it. No program is run here."""
import math
from collections import namedtuple

# `most`: the figure must not be above `bound`, else not below it.
Must = namedtuple("Must", "name what bound most unit")

MUSTS = (
    Must("speed f32", "GPT-2 124M, f32: tokens/s of PyTorch's", 1.1, False, "x"),
    Must("speed bf16", "GPT-2 124M, bf16: tokens/s of PyTorch's", 1.5, False, "x"),
    Must("memory f32", "peak memory of PyTorch's, f32", 0.8, True, "x"),
    Must("memory bf16", "peak memory of PyTorch's, bf16", 0.8, True, "x"),
    Must("start", "start to first step", 3, True, "s"),
    Must("step f32", "whole step, of the rate of our own products, f32", 0.55, False, "%"),
    Must("step bf16", "whole step, of the rate of our own products, bf16", 0.55, False, "%"),
    Must("tiles", "large bf16 products, of the tile instruction's rate", 0.42, False, "%"),
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
    Must("recording", "the trace's recording, of the shortest actions", 0.01, True, "%"),
)
NEVER = {
    "shards": "not measurable here: every run is cut so, there is none to hold it against",
    "peer llm.c": "not measured: no part runs it"
}


def number(value, unit):
    return "%.*f %%" % (0 if value >= 0.1 else 2, 100 * value) if unit == "%" else "%.2f %s" % (value, unit)


def distance(must, value):
    """How far from the bound, as a part of it; positive: missed."""
    return (value - must.bound) / must.bound * (1 if must.most else -1)


def verdict(must, value):
    """`value`: the figure, or a sentence that says why there is none, or none: its part was left out."""
    if must.name in NEVER:
        return NEVER[must.name]
    if value is None:
        return "not measured: --parts or --precisions left it out"
    if isinstance(value, str):
        return value
    if not math.isfinite(value):
        return "missed: no figure came of it"
    return "met" if distance(must, value) <= 0 else "missed by %.1f %%" % (100 * distance(must, value))


def judge(figures):
    """Of figures by the names of MUSTS: a row for each must, as they are written to the JSON."""
    strange = set(figures) - {must.name for must in MUSTS}
    if strange:
        raise KeyError("no must is called " + ", ".join(sorted(strange)))
    return [{
        "name": must.name, "what": must.what, "measured": value if isinstance(value, (int, float)) else None,
        "unit": must.unit, "must": must.bound, "bound": "at most" if must.most else "at least",
        "verdict": verdict(must, value)
    } for must in MUSTS for value in [figures.get(must.name)]]


def table(rows):
    lines = ["%-52s %10s %19s  %s" % ("", "measured", "must", "verdict")]
    for row in rows:
        measured = "-" if row["measured"] is None else number(row["measured"], row["unit"])
        lines.append(
            "%-52s %10s %19s  %s" %
            (row["what"], measured, row["bound"] + " " + number(row["must"], row["unit"]), row["verdict"]))
    return lines


def missed(rows):
    return [row["name"] for row in rows if row["verdict"].startswith("missed")]


def summary(rows):
    met, short = sum(row["verdict"] == "met" for row in rows), missed(rows)
    text = "musts: %d met, %d missed" % (met, len(short)) + (" (%s)" % ", ".join(short) if short else "")
    return text + ", %d without a figure" % (len(rows) - met - len(short))
