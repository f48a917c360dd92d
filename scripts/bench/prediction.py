#!/usr/bin/env python3
"""Steps that plans predict beside steps that run: real arithmetic on two ranks, and emulated ranks.

    prediction.py [--binary build/mindpipe-train] [--parts real,emulated] [--cells 30] [--output runs/bench/prediction.csv]

real: one profile of a small GPT on two ranks of one thread, which runs no step; then cells, layouts of the same model that the
profile has never run, each between two runs of a reference cell and corrected by how far these are from all of them: a machine that
others use grows slower and faster meanwhile. Where one of the two is more than 10 % above the median of all, the cell is run again, five
times at most. Raw figures stand beside. emulated: 40 layouts of two models, a small GPT and an encoder-decoder, on 4 to 64 ranks
that only wait, as long as a profile of such a model says, on a machine that is so many times slower that a forward takes 8 ms for 8 ranks.
A measured step is the median of steps 3 to 7. The table of all cells is written as CSV. What is asked of the figures stands at the end;
one that is missed ends the script with 1."""

import argparse
import collections
import csv
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import verdicts
from published_steps import rank_correlation
from running import at_once
from verdicts import Must

MUSTS = (
    Must("real", "real layouts: mean error", 0.06, True, "%"),
    Must("real worst", "real layouts: worst error", 0.15, True, "%"),
    Must("order", "real layouts: rank correlation, mean of the batches", 0.95, False, "x"),
    Must("within", "real layouts between the times that their plans say", 0.9, False, "%"),
    Must("first", "the first by its plan, off the best, worst batch", 0.05, True, "%"),
    Must("three", "the best of the first three, off the best, worst batch", 0.01, True, "%"),
    Must("emulated", "emulated layouts: mean error", 0.01, True, "%"),
    Must("emulated worst", "emulated layouts: worst error", 0.03, True, "%"),
    Must("emulated within", "emulated layouts between the times that their plans say", 0.9, False, "%"),
)

Model = collections.namedtuple("Model", "config settings")
MODELS = {
    "gpt": Model("demo", {"model.layers": 8, "model.width": 256, "model.heads": 8, "model.context": 256, "train.micro_batch": 2,
                          "train.batch": 16, "device.threads": 1}),
    "dates": Model("transformer-tiny", {"model.layers": 4, "model.width": 256, "model.heads": 8, "train.micro_batch": 16,
                                        "train.batch": 64, "device.threads": 1}),
}
REFERENCE = {"grid.pipeline": 1, "grid.data": 2, "grid.tensor": 1}
WARM_UP, COUNTED, TRIES, DRIFT, LONG_FORWARD = 2, 5, 6, 0.1, 0.008


def real_cells():
    """Layouts of two ranks: what divides, in which order, what is computed again, sharded or summed."""
    schedules = [{"schedule.kind": kind} for kind in ("gpipe", "1f1b", "zb-h1")]
    schedules += [{"schedule.kind": kind, "schedule.chunks": 2} for kind in ("interleaved", "breadth-first")]
    cells = [{"grid.pipeline": 2, **schedule, "train.recompute": recompute, "train.batch": batch}
             for recompute, batch, schedule in itertools.product(("none", "block"), (8, 16), schedules)]
    cells += [{"grid.data": 2, "train.zero": zero, "train.recompute": recompute, "train.batch": batch}
              for zero, recompute, batch in itertools.product((0, 1, 2), ("none", "block"), (8, 32))]
    cells += [{"grid.tensor": 2, "train.sequence_parallel": shared, "train.recompute": recompute, "train.batch": batch}
              for shared, recompute, batch in itertools.product(("false", "true"), ("none", "block"), (8, 16))]
    return [whole(cell) for cell in cells]


# Layouts of emulated ranks: model; stages, data and tensor ranks; schedule, chunks; ZeRO level; what is computed again; micro-batches.
EMULATED = (
    ("gpt", 1, 4, 1, "1f1b", 1, 0, "none", 4),
    ("gpt", 2, 2, 1, "1f1b", 1, 1, "none", 8),
    ("gpt", 2, 1, 2, "zb-h1", 1, 0, "none", 8),
    ("gpt", 4, 1, 1, "interleaved", 2, 0, "none", 8),
    ("gpt", 4, 1, 1, "breadth-first", 2, 0, "block", 8),
    ("gpt", 2, 2, 1, "elastic", 2, 2, "none", 8),
    ("dates", 2, 2, 1, "1f1b", 1, 1, "none", 8),
    ("dates", 1, 2, 2, "1f1b", 1, 2, "block", 4),
    ("dates", 4, 1, 1, "gpipe", 1, 0, "none", 8),
    ("dates", 2, 1, 2, "breadth-first", 2, 0, "none", 8),
    ("gpt", 1, 8, 1, "1f1b", 1, 2, "block", 4),
    ("gpt", 2, 4, 1, "breadth-first", 4, 1, "none", 8),
    ("gpt", 2, 2, 2, "zb-h1", 1, 1, "none", 8),
    ("gpt", 4, 2, 1, "interleaved", 2, 2, "none", 8),
    ("gpt", 4, 1, 2, "elastic", 2, 0, "none", 16),
    ("gpt", 8, 1, 1, "1f1b", 1, 0, "block", 16),
    ("gpt", 4, 2, 1, "zb-v", 2, 1, "none", 16),
    ("dates", 2, 4, 1, "interleaved", 2, 1, "none", 8),
    ("dates", 4, 2, 1, "zb-h1", 1, 0, "none", 8),
    ("dates", 4, 1, 2, "1f1b", 1, 0, "[1, 3]", 16),
    ("dates", 1, 4, 2, "1f1b", 1, 1, "none", 4),
    ("gpt", 1, 16, 1, "1f1b", 1, 1, "none", 4),
    ("gpt", 2, 8, 1, "elastic", 2, 2, "none", 8),
    ("gpt", 2, 4, 2, "gpipe", 1, 0, "block", 8),
    ("gpt", 4, 4, 1, "breadth-first", 2, 2, "none", 8),
    ("gpt", 4, 2, 2, "interleaved", 2, 1, "block", 8),
    ("gpt", 8, 2, 1, "zb-h1", 1, 0, "none", 16),
    ("gpt", 8, 1, 2, "1f1b", 1, 0, "none", 16),
    ("dates", 4, 4, 1, "elastic", 2, 1, "none", 8),
    ("dates", 2, 4, 2, "1f1b", 1, 2, "none", 8),
    ("gpt", 1, 16, 2, "1f1b", 1, 2, "none", 4),
    ("gpt", 2, 16, 1, "interleaved", 4, 1, "none", 8),
    ("gpt", 4, 4, 2, "zb-h1", 1, 2, "block", 8),
    ("gpt", 8, 4, 1, "gpipe", 1, 1, "none", 16),
    ("gpt", 8, 2, 2, "1f1b", 1, 0, "none", 16),
    ("dates", 4, 4, 2, "breadth-first", 2, 0, "none", 8),
    ("gpt", 4, 16, 1, "1f1b", 1, 1, "none", 8),
    ("gpt", 8, 4, 2, "1f1b", 1, 2, "none", 16),
    ("gpt", 4, 8, 2, "breadth-first", 2, 0, "none", 8),
    ("dates", 4, 8, 2, "zb-h1", 1, 1, "none", 8),
)


def emulated_cells():
    cells = []
    for model, pipeline, data, tensor, schedule, chunks, zero, recompute, micro_batches in EMULATED:
        micro_batch = MODELS[model].settings["train.micro_batch"]
        cells.append(whole({"grid.pipeline": pipeline, "grid.data": data, "grid.tensor": tensor, "schedule.kind": schedule,
                            "schedule.chunks": chunks, "train.zero": zero, "train.recompute": recompute,
                            "train.batch": micro_batch * data * micro_batches}, model))
    return cells


def whole(cell, model="gpt"):
    """A cell with its model, all degrees, and logical shards to match."""
    degrees = {f"grid.{axis}": cell.get(f"grid.{axis}", 1) for axis in ("pipeline", "data", "tensor")}
    return {"model": model, **MODELS[model].settings, **cell, **degrees, "reproducible.data": degrees["grid.data"],
            "reproducible.tensor": degrees["grid.tensor"]}


def ranks_of(cell):
    return cell["grid.pipeline"] * cell["grid.data"] * cell["grid.tensor"]


class Bench:
    def __init__(self, binary, folder):
        self.binary, self.folder, self.profiles = binary, folder, {}
        self.environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                OMPI_MCA_btl_vader_single_copy_mechanism="none", OMP_WAIT_POLICY="passive")
        self.first = at_once()

    def call(self, words, settings, ranks=0):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)] if ranks else []
        if settings.get("device.kind") == "emulated":
            launcher = self.first + launcher
        command = [*launcher, self.binary, *words, "--config", os.path.join(ROOT, "configs", MODELS[settings["model"]].config + ".yaml"),
                   *(f"{key}={value}" for key, value in settings.items() if key != "model")]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"prediction.py: '{' '.join(command)}' ended with {done.returncode}:\n{done.stderr[-2000:]}")

    def profile(self, model):
        """What blocks of a model take on two busy ranks of this machine."""
        if model not in self.profiles:
            self.profiles[model] = os.path.join(self.folder, f"{model}.yaml")
            self.call(["profile", "--output", self.profiles[model], "--budget", "60s"],
                      {"model": model, **MODELS[model].settings, "grid": "auto", "reproducible.tensor": "auto",
                       "reproducible.data": "auto"}, 2)
        return self.profiles[model]

    def slower_profile(self, model, times):
        """The same of a machine on which all work takes so many times as long."""
        slower = os.path.join(self.folder, f"{model}_slower.yaml")
        with open(self.profile(model), encoding="utf-8") as file:
            text = re.sub(r"(forward|input|weight): ([0-9.e+-]+)", lambda found: f"{found[1]}: {times * float(found[2])!r}", file.read())
        with open(slower, "w", encoding="utf-8") as file:
            file.write(re.sub(r"(update|clear): ([0-9.e+-]+)", lambda found: f"{found[1]}: {float(found[2]) / times!r}", text))
        return slower

    def predicted(self, cell, more):
        figures = os.path.join(self.folder, "plan.json")
        self.call(["plan", "--simulate", "--json", figures, "--ranks", str(ranks_of(cell))],
                  {"device.profile": self.profile(cell["model"]), **cell, **more})
        with open(figures, encoding="utf-8") as file:
            found = json.load(file)
        if found["estimated"] > 0:
            sys.exit(f"prediction.py: the profile lacks {100 * found['estimated']:.0f} % of what {describe(cell)} computes")
        return {"predicted": found["step_ns"] * 1e-9, "least": found["step_least_ns"] * 1e-9,
                "most": found["step_most_ns"] * 1e-9, "estimated": found["estimated"]}

    def measured(self, cell, more):
        run = tempfile.mkdtemp(dir=self.folder)
        try:
            self.call(["train"], {**cell, **more, "run.dir": run, "run.resume": "never",
                                  "train.steps": WARM_UP + COUNTED, "train.evaluate_every": 0, "checkpoint.every": 0,
                                  "energy.meter": "none"}, ranks_of(cell))
            emulated = os.path.join(run, "metrics.emulated.jsonl")
            with open(emulated if os.path.exists(emulated) else os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
                steps = [json.loads(line) for line in file]
            return statistics.median([step["seconds"] for step in steps if "seconds" in step][WARM_UP:])
        finally:
            shutil.rmtree(run)


def describe(cell):
    usual = MODELS[cell["model"]].settings
    return " ".join([cell["model"]] + [f"{key.split('.')[1]}={value}" for key, value in cell.items()
                                       if key != "model" and usual.get(key) != value and not key.startswith("reproducible")])


def errors(rows, column):
    return [abs(row["predicted"] / row[column] - 1) for row in rows]


def share_within(rows):
    return sum(row["least"] <= row["corrected"] <= row["most"] for row in rows) / len(rows)


def tell(title, rows, columns):
    for column in columns:
        off = errors(rows, column)
        print(f"{title}, {column}: mean error {100 * statistics.mean(off):.2f} %, worst {100 * max(off):.2f} %, rank "
              f"correlation {rank_correlation([row['predicted'] for row in rows], [row[column] for row in rows]):.3f}")


def choices(rows):
    """How good a choice among the layouts of a batch would be: rank correlation, the first by the plan and the best of the first
    three, as what they are off the best; of each batch."""
    for batch in sorted({row["batch"] for row in rows}):
        members = sorted((row for row in rows if row["batch"] == batch), key=lambda row: row["predicted"])
        measured = [row["corrected"] for row in members]
        order = rank_correlation([row["predicted"] for row in members], measured)
        first, three = measured[0] / min(measured) - 1, min(measured[:3]) / min(measured) - 1
        print(f"batch {batch}, {len(members)} layouts: rank correlation {order:.3f}, the first by its plan {100 * first:.1f} % off the "
              f"best, the best of the first three {100 * three:.1f} %")
        yield order, first, three


def figures_of(rows):
    """What MUSTS ask of all rows."""
    figures = {}
    real_rows, emulated_rows = ([row for row in rows if row["part"] == part] for part in ("real", "emulated"))
    if real_rows:
        off = errors(real_rows, "corrected")
        orders, firsts, threes = zip(*choices(real_rows))
        figures |= {"real": statistics.mean(off), "real worst": max(off), "order": statistics.mean(orders),
                    "within": share_within(real_rows), "first": max(firsts), "three": max(threes)}
    if emulated_rows:
        off = errors(emulated_rows, "corrected")
        figures |= {"emulated": statistics.mean(off), "emulated worst": max(off), "emulated within": share_within(emulated_rows)}
    return figures


def real(bench, number):
    reference = whole(REFERENCE)
    rows, references = [], [bench.measured(reference, {})]
    for cell in real_cells()[:number]:
        for _ in range(TRIES):
            before = references[-1]
            raw = bench.measured(cell, {})
            references.append(bench.measured(reference, {}))
            if max(before, references[-1]) <= (1 + DRIFT) * statistics.median(references):
                break
        rows.append({"part": "real", "cell": describe(cell), "ranks": 2, "batch": cell["train.batch"], "raw": raw,
                     "beside": (before + references[-1]) / 2, **bench.predicted(cell, {})})
        print(f"{rows[-1]['cell']}: {1e3 * rows[-1]['predicted']:.1f} ms predicted, {1e3 * raw:.1f} ms raw", flush=True)
    usual = statistics.median(references)
    for row in rows:
        row["corrected"] = row["raw"] * usual / row["beside"]
    tell("real arithmetic, two ranks", rows, ("corrected", "raw"))
    return rows


def emulated_device(bench, cell):
    """A device on which a stage's forward takes 8 ms for 8 ranks, and more for more: so many ranks share a few processors here."""
    more = {"device.kind": "emulated", "device.description": "core", "device.profile": bench.profile(cell["model"])}
    micro_batches = cell["train.batch"] // cell["train.micro_batch"] // cell["grid.data"]
    forward = bench.predicted(cell, more)["predicted"] / 3 / (micro_batches + cell["grid.pipeline"] - 1) / cell["schedule.chunks"]
    times = max(1, LONG_FORWARD * ranks_of(cell) / 8 / forward)
    return {**more, "device.profile": bench.slower_profile(cell["model"], times)}


def emulated(bench, number):
    rows = []
    for cell in emulated_cells()[:number]:
        more = emulated_device(bench, cell)
        rows.append({"part": "emulated", "cell": describe(cell), "ranks": ranks_of(cell), "batch": cell["train.batch"],
                     "raw": bench.measured(cell, more), **bench.predicted(cell, more)})
        rows[-1]["corrected"] = rows[-1]["raw"]
        print(f"{ranks_of(cell)} ranks, {rows[-1]['cell']}: {1e3 * rows[-1]['predicted']:.1f} ms predicted, "
              f"{1e3 * rows[-1]['raw']:.1f} ms", flush=True)
    tell("emulated ranks", rows, ("raw",))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--parts", default="real,emulated")
    parser.add_argument("--cells", type=int, default=1000, help="at most so many of each part")
    parser.add_argument("--output", default=os.path.join(ROOT, "runs", "bench", "prediction.csv"))
    arguments = parser.parse_args()
    os.makedirs(os.path.dirname(os.path.abspath(arguments.output)), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(arguments.binary), folder)
        parts = {"real": real, "emulated": emulated}
        rows = [row for part in arguments.parts.split(",") for row in parts[part](bench, arguments.cells)]
    with open(arguments.output, "w", newline="", encoding="utf-8") as file:
        columns = ["part", "cell", "ranks", "batch", "predicted", "least", "most", "corrected", "raw", "beside", "estimated"]
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    print(f"written to {arguments.output}")
    judged = verdicts.judge(figures_of(rows), verdicts.Machine("", False), musts=MUSTS)
    print("\n" + "\n".join(verdicts.table(judged)) + "\n" + verdicts.summary(judged))
    return 1 if verdicts.missed(judged) else 0


if __name__ == "__main__":
    sys.exit(main())
