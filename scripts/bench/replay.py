#!/usr/bin/env python3
"""What replay says of emulated runs, beside what is known of them.

    replay.py [--binary build/mindpipe-train] [--parts culprit,clean,whatif] [--runs 40] [--seed 1] [--output runs/bench/replay.csv]

culprit: runs of 4 to 16 ranks with one drawn fault each (a slow rank, a link that is slow, every seventh step slow, jitter, a late begin of
each step) that costs a step 2 % or more: whether the first cause that replay names is that one, and what it says that it costs beside what
a step really gains without the fault. clean: half as many runs without a fault, of which nobody may be accused. whatif: other programs,
predicted from one trace each and then run. Of all runs: how well the replay gives its own times back, and how far the medians of every
second step are off those of the others. Ranks run at real-time priority where chrt may set it, so the machine should do nothing else."""

import argparse
import csv
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS, WORTH = 14, 0.02
GRIDS = [(4, 1, 1), (2, 2, 1), (8, 1, 1), (4, 2, 1), (2, 4, 1), (8, 2, 1), (4, 4, 1)]


def layout(rng, grid):
    pipeline, data, _ = grid
    kind = rng.choice(("1f1b", "gpipe", "zb-h1", "interleaved")) if pipeline > 1 else "1f1b"
    return {"grid.pipeline": pipeline, "grid.data": data, "schedule.kind": kind, "schedule.chunks": 2 if kind == "interleaved" else 1,
            "train.zero": rng.choice((0, 1)) if data > 1 else 0, "train.batch": 4 * 2 * pipeline * data}


class Runs:
    """Emulated runs in a folder of their own."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.count = binary, folder, 0
        self.first = ["chrt", "-r", "10"] if subprocess.run(["chrt", "-r", "10", "true"], capture_output=True).returncode == 0 else []

    def train(self, settings, inject=""):
        ranks = settings["grid.pipeline"] * settings.get("grid.data", 1) * settings.get("grid.tensor", 1)
        width = 192 if ranks <= 8 else 272
        self.count += 1
        run = os.path.join(self.folder, f"run-{self.count}")
        config = os.path.join(self.folder, "config.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"run: {{dir: {run}}}\n"
                       f"model: {{kind: gpt, layers: {max(8, 2 * settings['grid.pipeline'])}, width: {width}, heads: 4, context: 128}}\n"
                       "data: {train: [synthetic:arithmetic]}\n"
                       f"train: {{steps: {STEPS}, batch: 32, micro_batch: 4}}\n"
                       "optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}\n"
                       "device: {kind: emulated, description: core}\n")
        command = self.first + ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks),
                                self.binary, "train", "--config", config]
        command += [f"{key}={value}" for key, value in settings.items()]
        if inject:
            command += ["--inject", inject]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return run

    def replay(self, run, *what_if):
        done = subprocess.run([self.binary, "replay", run, *what_if], capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            return {"refused": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(done.returncode)}
        with open(os.path.join(run, "replay", "replay.json"), encoding="utf-8") as file:
            return json.load(file)


def draw_fault(rng, settings):
    """A fault as --inject has it, and what names it: kind, rank, and of a link both stages."""
    pipeline, data = settings["grid.pipeline"], settings["grid.data"]
    rank = rng.randrange(pipeline * data)
    kind = rng.choice(("slow", "slow", "link", "seventh", "jitter", "late"))
    if kind == "link":
        stage, replica = rng.randrange(pipeline - 1), rng.randrange(data)
        ends = stage * data + replica, (stage + 1) * data + replica
        return f"slow-link@{ends[0]}-{ends[1]}:1:{rng.randrange(2, 9)}ms", ("slow link", None, (stage, stage + 1))
    if kind == "slow":
        return f"slow@{rank}:1:{rng.uniform(1.08, 2):.3f}", ("slow rank", rank, None)
    if kind == "seventh":  # of the twelve steps that are traced, two have to be slow at least
        return f"slow@{rank}:1:{rng.uniform(1.5, 3):.3f}/4", ("sometimes slow", rank, None)
    if kind == "jitter":
        return f"jitter@{rank}:1:{rng.uniform(0.15, 0.4):.3f}", ("jitter", rank, None)
    return f"slow@{rank}:1:{rng.randrange(5, 40)}ms/1", ("host", rank, None)


def names(cause, culprit):
    kind, rank, stages = culprit
    if stages:
        return cause["kind"] == kind and (cause["stage"], cause["other_stage"]) == stages
    return cause["kind"] == kind and cause["rank"] == rank


def culprits(runs, rng, count, rows):
    right = near = 0
    while count > 0:
        settings = layout(rng, rng.choice(GRIDS))
        clean = runs.replay(runs.train(settings))
        fault, culprit = draw_fault(rng, settings)
        found = runs.replay(runs.train(settings, fault))
        if "refused" in clean or "refused" in found:
            print(f"refused: {clean.get('refused', found.get('refused'))}")
            count -= 1
            continue
        costs = found["measured_period"] - clean["measured_period"]
        if costs < WORTH * clean["measured_period"]:
            continue
        count -= 1
        first = found["causes"][0] if found["causes"] else None
        named = bool(first) and names(first, culprit)
        close = named and abs(first["saves"] - costs) <= max(0.15 * costs, 1e6)
        right, near = right + named, near + close
        rows.append(["culprit", settings, fault, named, first["saves"] if first else 0, costs, found["held_out"]])
        print(f"{'right' if named else 'WRONG'} {fault}: {first['text'] if first else 'nobody accused'} (in truth {costs / 1e6:.2f} ms)")
    done = [row for row in rows if row[0] == "culprit"]
    print(f"culprit: first cause right in {right} of {len(done)}, its cost within 15 % or 1 ms in {near}")


def clean_runs(runs, rng, count, rows):
    accused = 0
    for _ in range(count):
        settings = layout(rng, rng.choice(GRIDS))
        found = runs.replay(runs.train(settings))
        causes = found.get("causes", [])
        accused += bool(causes)
        rows.append(["clean", settings, "", not causes, 0, 0, found.get("held_out", 0)])
        if causes:
            print(f"accused: {causes[0]['text']} of {settings}")
    print(f"clean: somebody accused in {accused} of {count}")


def what_ifs(runs, rng, count, rows):
    """Other programs of a traced one: same grid, and other grids."""
    errors = {"same grid": [], "other grid": []}
    inside = 0
    for _ in range(count):
        settings = layout(rng, rng.choice(GRIDS))
        pipeline, data = settings["grid.pipeline"], settings["grid.data"]
        changes = [{"schedule.kind": "zb-h1", "schedule.chunks": 1}, {"schedule.kind": "interleaved", "schedule.chunks": 2},
                   {"train.micro_batch": 2}, {"schedule.kind": "gpipe", "schedule.chunks": 1}]
        if data > 1:
            changes.append({"train.zero": 1 - settings["train.zero"]})
        if pipeline > 2:
            changes.append({"grid.pipeline": pipeline // 2, "grid.data": data * 2})
        change = rng.choice(changes)
        run = runs.train(settings)
        said = runs.replay(run, *[f"{key}={value}" for key, value in change.items()])
        truth = runs.replay(runs.train({**settings, **change}))
        if "refused" in said or "refused" in truth:
            print(f"refused: {said.get('refused', truth.get('refused'))}")
            continue
        predicted = said["changes"][-1]["expected"]
        error = predicted["period"] / truth["expected"]["period"] - 1
        errors["other grid" if "grid.pipeline" in change else "same grid"].append(error)
        inside += predicted["least"] <= truth["expected"]["period"] <= predicted["most"]
        rows.append(["whatif", settings, change, abs(error) <= 0.03, predicted["period"], truth["expected"]["period"],
                     said["held_out"]])
        print(f"{error:+.2%} {change} of {settings}")
    for kind, all_of in errors.items():
        if all_of:
            print(f"{kind}: {len(all_of)} what-ifs, mean {statistics.mean(map(abs, all_of)):.2%} off, worst {max(map(abs, all_of)):.2%}")
    print(f"the printed interval holds the truth in {inside} of {sum(map(len, errors.values()))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build/mindpipe-train"))
    parser.add_argument("--parts", default="culprit,clean,whatif")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=os.path.join(ROOT, "runs/bench/replay.csv"))
    asked = parser.parse_args()
    folder, rows = tempfile.mkdtemp(prefix="mindpipe_replay_"), []
    try:
        runs, rng = Runs(asked.binary, folder), random.Random(asked.seed)
        if not runs.first:
            print("chrt may not set a real-time priority here: what others run falls on these figures")
        for part, count in (("culprit", asked.runs), ("clean", asked.runs // 2), ("whatif", asked.runs)):
            if part in asked.parts.split(","):
                {"culprit": culprits, "clean": clean_runs, "whatif": what_ifs}[part](runs, rng, count, rows)
    finally:
        shutil.rmtree(folder)
    held = [abs(row[6]) for row in rows]
    if held:
        print(f"held out: medians of every second step are {statistics.mean(held):.2%} off the others in the mean, "
              f"{max(held):.2%} at worst")
    os.makedirs(os.path.dirname(asked.output), exist_ok=True)
    with open(asked.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["part", "layout", "change", "right", "said", "truth", "held_out"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
