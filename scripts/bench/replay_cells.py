"""What replay.py lets be wrong with runs, and which other runs it predicts. No program is run here."""
import math
import re

STEPS = 14
GRIDS = [(4, 1, 1), (2, 2, 1), (8, 1, 1), (4, 2, 1), (2, 4, 1), (8, 2, 1), (4, 4, 1)]
FAULTS = ("slow", "link", "seventh", "stages", "micro-batches", "jitter", "contention", "late")
# Sums of the tied table between its stages may be among those that hold up messages.
CONTENTION = tuple(f"sums of gradients ({summed}) hold up messages of the pipeline" for summed in ("data", "data, shared units"))


def of_grid(pipeline, data=1, tensor=1, schedule="1f1b", chunks=1, zero=0, **more):
    return {"grid.pipeline": pipeline, "grid.data": data, "grid.tensor": tensor, "schedule.kind": schedule, "schedule.chunks": chunks,
            "train.zero": zero, "train.batch": 8 * pipeline * data, **more}


TWO_CORES = {"device.kind": "cpu", "device.threads": 1, "device.description": ""}
EMULATED_LANES = {"device.kind": "emulated", "device.description": "core", "supernet.prices": "h200"}
COVERING = [
    of_grid(2), of_grid(4, schedule="gpipe", **{"model.tied": "false"}), of_grid(4, schedule="zb-h1"),
    of_grid(2, 2, schedule="interleaved", chunks=2, zero=1), of_grid(2, 2, zero=2),
    of_grid(4, 2, schedule="breadth-first", chunks=2, zero=1), of_grid(2, 1, 2, schedule="zb-h1"), of_grid(2, 2, 2, zero=2),
    of_grid(4, schedule="zb-v", chunks=2), of_grid(4, schedule="dualpipe-v", chunks=2),
    of_grid(4, 2, schedule="v-half", chunks=2), of_grid(4, 2, schedule="elastic", chunks=2),
    of_grid(4, schedule="searched", chunks=2), of_grid(8, 2, zero=2, **{"model.tied": "false"}),
    {"grid.supernet": 2, "grid.pipeline": 4, **EMULATED_LANES}, {"grid.supernet": 4, "grid.pipeline": 4, **EMULATED_LANES},
    of_grid(2, **TWO_CORES), of_grid(2, schedule="zb-h1", **TWO_CORES, **{"model.tied": "false"}), of_grid(1, 2, zero=2, **TWO_CORES),
    of_grid(1, 2, **TWO_CORES), of_grid(1, 1, 2, **TWO_CORES), {"grid.supernet": 2, "grid.pipeline": 1, "device.threads": 1}]


def layout(rng, grid):
    pipeline, data, _ = grid
    kind = rng.choice(("1f1b", "gpipe", "zb-h1", "interleaved")) if pipeline > 1 else "1f1b"
    return {"grid.pipeline": pipeline, "grid.data": data, "schedule.kind": kind, "schedule.chunks": 2 if kind == "interleaved" else 1,
            "train.zero": rng.choice((0, 1)) if data > 1 else 0, "train.batch": 4 * 2 * pipeline * data}


def layers_of(settings):
    return max(8, 2 * settings["grid.pipeline"])


def uneven_cuts(rng, cuts, blocks):
    """These cuts with one moved by two or three blocks, and the stage that has more than before."""
    edges = [0, *cuts, blocks]
    moves = []
    for cut in range(1, len(edges) - 1):
        for by in (-3, -2, 2, 3):
            if edges[cut - 1] < edges[cut] + by < edges[cut + 1]:
                moves.append((cut, by))
    cut, by = rng.choice(moves)
    moved = [edge + by if number == cut else edge for number, edge in enumerate(edges)]
    return moved[1:-1], cut - 1 if by > 0 else cut


class Fault:
    """What is wrong with a run: words of --inject, settings that only it has, and what names it: kind, rank, and of a link both stages."""

    def __init__(self, kind, culprit, inject="", settings=None):
        self.kind, self.culprit, self.inject, self.settings = kind, culprit, inject, settings or {}

    def __str__(self):
        return self.inject or f"{self.kind} {self.settings}".strip()

    def is_named_by(self, cause):
        kind, rank, stages = self.culprit
        if cause["kind"] != kind:
            return False
        if kind == "contention":
            return cause["text"].startswith(CONTENTION)
        if kind == "slow stage":
            return cause["stage"] == stages[0]
        return (cause["stage"], cause["other_stage"]) == stages if stages else cause["rank"] == rank


def settings_for(rng, kind):
    """A layout in which a kind of fault may be seen."""
    if kind == "contention":
        # Sums on links of their own, as fast as those of messages, and so small that they end beside passes: on shared links messages lose
        # what sums take, and sums lose nothing that counts.
        pipeline, data, rate = 4, 2, rng.uniform(1.8e7, 3.2e7)
        return {"grid.pipeline": pipeline, "grid.data": data, "schedule.kind": rng.choice(("breadth-first", "interleaved")),
                "schedule.chunks": 2, "train.zero": 0, "train.batch": 4 * 2 * pipeline * data,
                "model.mlp_width": rng.randrange(256, 449, 64),
                "device.links.ranks_per_node": data, "device.links.rate": rate, "device.links.rate_between_nodes": rate,
                "device.links.latency": 1e-5, "device.links.latency_between_nodes": 1e-5}
    settings = layout(rng, rng.choice(GRIDS))
    if kind == "stages" and settings["schedule.kind"] == "interleaved":
        settings.update({"schedule.kind": "1f1b", "schedule.chunks": 1})
    if kind == "seventh":  # the last 28 steps are traced
        settings["train.steps"] = 2 * STEPS + 2
    return settings


def draw_fault(rng, settings, kind, cuts=None):
    """A fault of a kind. `cuts`: those of the layout, for stages that are to be unequal."""
    pipeline, data = settings["grid.pipeline"], settings["grid.data"]
    rank = rng.randrange(pipeline * data)
    if kind == "link":
        stage, replica = rng.randrange(pipeline - 1), rng.randrange(data)
        ends = stage * data + replica, (stage + 1) * data + replica
        return Fault(kind, ("slow link", None, (stage, stage + 1)), f"slow-link@{ends[0]}-{ends[1]}:1:{rng.randrange(2, 9)}ms")
    if kind == "slow":
        return Fault(kind, ("slow rank", rank, None), f"slow@{rank}:1:{rng.uniform(1.08, 2):.3f}")
    if kind == "seventh":
        return Fault(kind, ("sometimes slow", rank, None), f"slow@{rank}:1:{rng.uniform(1.5, 3):.3f}/7")
    if kind == "stages":
        moved, stage = uneven_cuts(rng, cuts, 2 * layers_of(settings) + 2)
        return Fault(kind, ("slow stage", None, (stage,)), settings={"schedule.cuts": f"[{','.join(map(str, moved))}]"})
    if kind == "micro-batches":
        share = rng.uniform(0.3, 0.9)
        return Fault(kind, ("unequal micro-batches", -1, None), ",".join(f"uneven@{replica}:1:{share:.3f}" for replica in range(data)))
    if kind == "jitter":
        return Fault(kind, ("jitter", rank, None), f"jitter@{rank}:1:{rng.uniform(0.15, 0.4):.3f}")
    if kind == "late":
        return Fault(kind, ("host", rank, None), f"slow@{rank}:1:{rng.randrange(5, 40)}ms/1")
    return Fault(kind, ("contention", None, None), settings={"device.links.ranks_per_node": pipeline * data})  # and now on the same ones


class WhatIf:
    """A change of a traced run: how replay is asked, and the run that comes true: its settings, its faults, and how many times as long
    backwards take by its prices. `base`: settings of both."""

    def __init__(self, asked, settings=None, inject="", base=None, backward=1):
        self.asked, self.settings, self.inject, self.base, self.backward = asked, settings or {}, inject, base or {}, backward
        self.other_grid = any(key in self.settings for key in ("grid.pipeline", "grid.data"))

    def __str__(self):
        return " ".join(self.asked)


def of_settings(settings):
    return WhatIf([f"{key}={value}" for key, value in settings.items()], settings)


def same_grid(settings, cuts):
    """Changes on the traced grid; `cuts`: those of the layout."""
    pipeline, data = settings["grid.pipeline"], settings["grid.data"]
    slow = min(3, pipeline * data - 1)
    late = ",".join(f"slow-link@{replica}-{data + replica}:1:2ms" for replica in range(data))
    found = [WhatIf(["--scale", f"rank:{slow}=1.5"], inject=f"slow@{slow}:1:1.5"), WhatIf(["--scale", "link:0-1=+2ms"], inject=late),
             WhatIf(["--scale", "kind:backward=0.8"], base={"schedule.kind": "1f1b", "schedule.chunks": 1}, backward=0.8),
             of_settings({"train.micro_batch": 2})]
    for kind, chunks in (("1f1b", 1), ("gpipe", 1), ("zb-h1", 1), ("interleaved", 2)):
        if kind != settings["schedule.kind"] and (chunks == 1 or settings["grid.pipeline"] * 4 <= 2 * layers_of(settings)):
            found.append(of_settings({"schedule.kind": kind, "schedule.chunks": chunks}))
    if settings["schedule.chunks"] == 1 and cuts:
        found.append(of_settings({"schedule.cuts": "[" + ",".join(str(cut - 1) for cut in cuts) + "]"}))
    if data > 1:
        found.append(of_settings({"train.zero": 1 - settings["train.zero"]}))
        # Ranks of a data group are a node, so that links of nodes carry sums alone.
        slow_sums = {"device.links.ranks_per_node": data, "device.links.rate": 2e8, "device.links.latency": 1e-5,
                     "device.links.rate_between_nodes": 1e10, "device.links.latency_between_nodes": 1e-5}
        found.append(WhatIf(["--scale", "axis:data=free"], {"device.links.rate": 1e18, "device.links.latency": 1e-9}, base=slow_sums))
    return found


def other_grids(settings):
    """Changes of the grid that keep the ranks, each degree twice or half as large."""
    pipeline, data = settings["grid.pipeline"], settings["grid.data"]
    chunks = {"schedule.kind": "1f1b", "schedule.chunks": 1} if settings["schedule.chunks"] > 1 else {}
    found = []
    if pipeline > 2:
        found.append(of_settings({"grid.pipeline": pipeline // 2, "grid.data": data * 2, **chunks}))
    if data > 1 and pipeline < 8:
        found.append(of_settings({"grid.pipeline": pipeline * 2, "grid.data": data // 2, "train.zero": 0, **chunks}))
    return found


def scaled_backwards(profile, factor):
    """A profile in which backwards take so many times as long."""
    return re.sub(r"(input|weight): ([-+0-9.e]+)", lambda found: f"{found[1]}: {float(found[2]) * factor!r}", profile)


def paired(ratios):
    """The mean of some ratios, and how far it may be off, 19 times of 20."""
    students_t = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}
    mean = sum(ratios) / len(ratios)
    spread = math.sqrt(sum((ratio - mean) ** 2 for ratio in ratios) / (len(ratios) - 1))
    return mean, students_t[len(ratios)] * spread / math.sqrt(len(ratios))
