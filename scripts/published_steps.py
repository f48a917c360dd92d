"""Steps that others have measured and published (data/published/), beside what plans say of them."""

import concurrent.futures
import csv
import itertools
import json
import math
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, "data", "published")


class Step:
    """One published step: the settings of its configuration, and the seconds that it took."""

    def __init__(self, group, name, ranks, settings, seconds):
        self.group, self.name, self.ranks, self.settings, self.seconds = group, name, ranks, settings, seconds


def settings_of_model(layers, width, heads, vocabulary, sequence):
    return {"model.layers": layers, "model.width": width, "model.heads": heads, "model.vocabulary": vocabulary,
            "model.context": sequence}


def settings_of_grid(pipeline, data, tensor):
    return {"grid.pipeline": pipeline, "grid.data": data, "grid.tensor": tensor,
            "reproducible.data": data, "reproducible.tensor": tensor}


def published():
    """The steps of sets K, N, M and L."""
    with open(os.path.join(DATA, "published_steps.csv"), encoding="utf-8") as file:
        for row in csv.DictReader(file):
            settings = settings_of_model(row["layers"], row["width"], row["heads"], row["vocabulary"],
                                         row["sequence"])
            settings |= settings_of_grid(row["pipeline"], row["data"], row["tensor"])
            for key in ("key_value_heads", "mlp_width", "mlp", "norm", "positions", "bias", "tied"):
                settings["model." + key] = row[key]
            for key in ("micro_batch", "batch", "recompute", "sequence_parallel"):
                settings["train." + key] = row[key]
            if row["chunks"] != "1":
                settings |= {"schedule.kind": "interleaved", "schedule.chunks": row["chunks"]}
            yield Step(row["set"], row["name"], int(row["ranks"]), settings, float(row["seconds"]))


def vtrain_single():
    """1,440 steps on one node of eight A100; a step's group has equal layers, width, batch and GPUs."""
    with open(os.path.join(DATA, "vtrain_single.csv"), encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    for row in rows:
        ranks, batch, micro_batch, width, heads, layers, sequence, tensor, data, pipeline = map(int, row[:10])
        settings = settings_of_model(layers, width, heads, 51200, sequence)
        settings |= settings_of_grid(pipeline, data, tensor)
        settings |= {"train.micro_batch": micro_batch, "train.batch": batch, "train.recompute": "block",
                     "model.mlp_width": 4 * width, "train.sequence_parallel": "false"}
        name = f"micro_batch {micro_batch}, pipeline {pipeline} x data {data} x tensor {tensor}"
        yield Step((layers, width, batch, ranks), name, ranks, settings, float(row[10]) / 1000)


def planned_seconds(program, steps, device, extra=()):
    """What `plan --simulate` says of each step, on as many processors as there are; None: it was refused."""

    def one(step):
        words = [f"{key}={value}" for key, value in step.settings.items()]
        command = [program, "plan", "--simulate", "--json", "-", "--ranks", str(step.ranks), "--config",
                   os.path.join(ROOT, "configs", "gpt2-1.5b.yaml"), "device.kind=cuda",
                   f"device.description={device}", "train.zero=0", *words, *extra]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{step.group} {step.name}: {done.stderr.strip()}")
        return json.loads(done.stdout)["step_ns"] * 1e-9

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(one, steps))


def errors(steps, seconds):
    """Planned over published, minus 1, for each step."""
    return [planned / step.seconds - 1 for step, planned in zip(steps, seconds)]


def mean_and_worst(steps, seconds):
    off = [abs(error) for error in errors(steps, seconds)]
    return sum(off) / len(off), max(off)


def ranks_of(values):
    """The place of each value in their order; equal ones share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    places = [0.0] * len(values)
    for _, equal in itertools.groupby(enumerate(order), key=lambda pair: values[pair[1]]):
        equal = list(equal)
        for _, index in equal:
            places[index] = sum(place for place, _ in equal) / len(equal)
    return places


def rank_correlation(one, other):
    one, other = ranks_of(one), ranks_of(other)
    mean = (len(one) - 1) / 2
    products = sum((a - mean) * (b - mean) for a, b in zip(one, other))
    squares = math.sqrt(sum((a - mean) ** 2 for a in one) * sum((b - mean) ** 2 for b in other))
    return products / squares if squares else 1.0


def regret(steps, seconds, tries):
    """How much slower than the best the best of the first few by the plan is."""
    order = sorted(range(len(steps)), key=seconds.__getitem__)[:tries]
    return min(steps[i].seconds for i in order) / min(step.seconds for step in steps) - 1


def as_much_data_as_fits(steps):
    """A rule of thumb's order of layouts that all fit: the most data ranks, then the largest micro-batch."""
    return [(-step.settings["grid.data"], -step.settings["train.micro_batch"]) for step in steps]


def groups(steps, seconds, fewest=5):
    """Groups of at least so many steps among which a search would choose, each with its planned seconds."""
    found = {}
    for step, planned in zip(steps, seconds):
        found.setdefault(step.group, []).append((step, planned))
    for members in found.values():
        if len(members) >= fewest:
            yield [step for step, _ in members], [planned for _, planned in members]
