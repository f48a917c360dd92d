#!/usr/bin/env python3
"""What replay says of emulated runs, beside what is known of them.

    replay.py [--binary build/mindpipe-train] [--parts culprit,pairs,clean,whatif,lanes,starts,busy] [--runs 40] [--seed 1]
              [--output runs/bench/replay.csv]

culprit: runs of 4 to 16 ranks with one drawn fault each (a slow rank, a link that is slow, every seventh step slow, jitter, a late begin of
each step) that costs a step 2 % or more: whether the first cause that replay names is that one, and what it says that it costs beside what
a step really gains without the fault. pairs: half as many runs with two faults, both of which should be among the first three causes.
clean: half as many runs without a fault, of which nobody may be accused. whatif: other programs, predicted from one trace each and then
run; lanes: the same of supernets, a quarter as many. starts: four bad layouts of eight emulated ranks and of two real ones, what plan
--search --from makes of each, and the best layout that running all of them finds. busy: five runs of two real ranks, each held on a
processor of its own, of which one has to share it with a loop that computes for nothing. Of all runs: how well the replay gives its own
times back, and how far the medians of every second step are off those of the others. At the end stands each figure beside what is asked of
it (replay_musts.py); one that is missed ends the script with 1. Ranks run at real-time priority where chrt may set it, so the machine
should do nothing else; a run beside which processors ran others for 2 % of a step is made again."""

import argparse
import csv
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import verdicts
from replay_musts import Found

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS, WORTH, MUCH_DELAY = 14, 0.02, 0.02
GRIDS = [(4, 1, 1), (2, 2, 1), (8, 1, 1), (4, 2, 1), (2, 4, 1), (8, 2, 1), (4, 4, 1)]


def layout(rng, grid):
    pipeline, data, _ = grid
    kind = rng.choice(("1f1b", "gpipe", "zb-h1", "interleaved")) if pipeline > 1 else "1f1b"
    return {"grid.pipeline": pipeline, "grid.data": data, "schedule.kind": kind, "schedule.chunks": 2 if kind == "interleaved" else 1,
            "train.zero": rng.choice((0, 1)) if data > 1 else 0, "train.batch": 4 * 2 * pipeline * data}


class Runs:
    """Emulated runs in a folder of their own."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.count, self.found = binary, folder, 0, Found()
        self.first = ["chrt", "-r", "10"] if subprocess.run(["chrt", "-r", "10", "true"], capture_output=True).returncode == 0 else []

    def config(self, text):
        path = os.path.join(self.folder, "config.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, ranks, words):
        """What the program prints on so many ranks."""
        command = self.first + ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), self.binary]
        done = subprocess.run(command + words, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command + words)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def run(self, text, ranks, settings, inject=""):
        """A new run directory of a training."""
        self.count += 1
        run = os.path.join(self.folder, f"run-{self.count}")
        self.start(ranks, ["train", "--config", self.config(text), f"run.dir={run}"] +
                   [f"{key}={value}" for key, value in settings.items()] + (["--inject", inject] if inject else []))
        return run

    def train(self, settings, inject=""):
        ranks = settings["grid.pipeline"] * settings.get("grid.data", 1) * settings.get("grid.tensor", 1)
        width = 192 if ranks <= 8 else 272
        return self.run(f"model: {{kind: gpt, layers: {max(8, 2 * settings['grid.pipeline'])}, width: {width}, heads: 4, context: 128}}\n"
                        "data: {train: [synthetic:arithmetic]}\n"
                        f"train: {{steps: {STEPS}, batch: 32, micro_batch: 4}}\n"
                        "optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}\n"
                        "device: {kind: emulated, description: core}\n", ranks, settings, inject)

    def observe(self, settings, inject="", what_if=()):
        """What replay says of a training, which is made again, twice at most, where processors ran others for much of its steps."""
        for _ in range(3):
            said = self.replay(self.train(settings, inject), *what_if)
            if said.get("run_delay", 0) < MUCH_DELAY * said.get("measured_period", 1):
                break
        return said

    def replay(self, run, *what_if):
        done = subprocess.run([self.binary, "replay", run, *what_if], capture_output=True, text=True, timeout=300)
        self.found.add("whole", value=done.returncode == 0)
        if done.returncode != 0:
            return {"refused": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else str(done.returncode)}
        with open(os.path.join(run, "replay", "replay.json"), encoding="utf-8") as file:
            said = json.load(file)
        self.found.add("identity", value=said["replayed_period"] / said["measured_period"] - 1)
        if said["held_out"]:
            self.found.add("held out", "held out worst", value=said["held_out"])
        return said


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
    while count > 0:
        settings = layout(rng, rng.choice(GRIDS))
        clean = runs.observe(settings)
        fault, culprit = draw_fault(rng, settings)
        found = runs.observe(settings, fault)
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
        runs.found.add("culprit", value=named)
        runs.found.add("cost", value=close)
        rows.append(["culprit", settings, fault, named, first["saves"] if first else 0, costs, found["held_out"]])
        print(f"{'right' if named else 'WRONG'} {fault}: {first['text'] if first else 'nobody accused'} (in truth {costs / 1e6:.2f} ms)")


def pairs(runs, rng, count, rows):
    """Two faults at once, of different ranks."""
    done = 0
    while done < count:
        settings = layout(rng, rng.choice(GRIDS))
        (first, one), (second, other) = draw_fault(rng, settings), draw_fault(rng, settings)
        if one[0] == other[0] and one[1:] == other[1:]:
            continue
        costs = [runs.observe(settings, fault)["measured_period"] for fault in (first, second)]
        clean = runs.observe(settings)["measured_period"]
        if min(costs) < (1 + WORTH) * clean:
            continue
        done += 1
        causes = runs.observe(settings, f"{first},{second}")["causes"][:3]
        both = all(any(names(cause, culprit) for cause in causes) for culprit in (one, other))
        runs.found.add("pairs", value=both)
        rows.append(["pairs", settings, f"{first},{second}", both, 0, 0, 0])
        print(f"{'both' if both else 'WRONG'} {first},{second}: {'; '.join(cause['text'] for cause in causes) or 'nobody accused'}")


def clean_runs(runs, rng, count, rows):
    for _ in range(count):
        settings = layout(rng, rng.choice(GRIDS))
        found = runs.observe(settings)
        causes = found.get("causes", [])
        runs.found.add("clean", value=not causes)
        rows.append(["clean", settings, "", not causes, 0, 0, found.get("held_out", 0)])
        if causes:
            print(f"accused: {causes[0]['text']} of {settings}")


def what_ifs(runs, rng, count, rows):
    """Other programs of a traced one: same grid, and other grids."""
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
        said = runs.observe(settings, what_if=[f"{key}={value}" for key, value in change.items()])
        truth = runs.observe({**settings, **change})
        if "refused" in said or "refused" in truth:
            print(f"refused: {said.get('refused', truth.get('refused'))}")
            continue
        predicted = said["changes"][-1]["expected"]
        error = predicted["period"] / truth["expected"]["period"] - 1
        if "grid.pipeline" in change:
            runs.found.add("other", value=error)
            runs.found.add_order(predicted["period"], truth["expected"]["period"])
        else:
            runs.found.add("same", "same worst", value=error)
        runs.found.add("inside", value=predicted["least"] <= truth["expected"]["period"] <= predicted["most"])
        rows.append(["whatif", settings, change, abs(error) <= 0.03, predicted["period"], truth["expected"]["period"],
                     said["held_out"]])
        print(f"{error:+.2%} {change} of {settings}")


def lanes(runs, rng, count, rows):
    """Other lanes, stages, cuts and rooms of traced supernets."""
    with open(os.path.join(ROOT, "configs", "supernet-tiny.yaml"), encoding="utf-8") as file:
        text = file.read().replace("configs/spaces", os.path.join(ROOT, "configs", "spaces"))
    grids = [{"grid.supernet": lane, "grid.pipeline": 8 // lane} for lane in (1, 2, 4)]
    for _ in range(count):
        base = {"device.kind": "emulated", "device.description": "core", "train.steps": 96, "trace.steps": 48, "train.evaluate_every": 0,
                "supernet.prices": "h200", "seed": rng.randrange(100), **rng.choice(grids)}
        change = rng.choice([grid for grid in grids if grid != {key: base[key] for key in grid}] +
                            [{"supernet.cuts": "own"}, {"supernet.admission": 2}])
        said = runs.replay(runs.run(text, 8, base), *[f"{key}={value}" for key, value in change.items()])
        truth = runs.replay(runs.run(text, 8, {**base, **change}))
        if "refused" in said or "refused" in truth:
            print(f"refused: {said.get('refused', truth.get('refused'))}")
            continue
        predicted = said["changes"][-1]["expected"]
        error = predicted["period"] / truth["subnets_took"] - 1
        runs.found.add("lanes", value=error)
        runs.found.add("inside", value=predicted["least"] <= truth["subnets_took"] <= predicted["most"])
        rows.append(["lanes", base, change, abs(error) <= 0.05, predicted["period"], truth["subnets_took"], 0])
        print(f"{error:+.2%} {change} of {base['grid.supernet']} x {base['grid.pipeline']} (measured now: "
              f"{truth['measured_period'] / said['measured_period']:.3f} of before)")


def cuts_of(layers, stages):
    """All ways to cut the blocks (layers, the first, the last) into stages, none more than a block and a half beyond an equal share."""
    blocks = layers + 2
    for cut in itertools.combinations(range(1, blocks), stages - 1):
        edges = (0, *cut, blocks)
        if max(edges[k + 1] - edges[k] for k in range(stages)) <= blocks / stages + 1.5:
            yield "[" + ",".join(map(str, cut)) + "]"


def bad_starts(stages, layers):
    """Name, settings to begin with, and all values of what may change. Messages that take long make small micro-batches bad."""
    uneven = "[" + ",".join(str(stage) for stage in range(1, stages)) + "]"
    kinds = [{"schedule.kind": kind, "schedule.chunks": chunks} for kind, chunks in
             [("1f1b", 1), ("gpipe", 1), ("zb-h1", 1), ("zb-v", 2), ("dualpipe-v", 2), ("v-half", 2), ("interleaved", 2),
              ("breadth-first", 2)]
             if 2 * stages <= layers or chunks == 1]
    late = {"device.links.latency": 0.01}
    return [("uneven cuts", {"schedule.cuts": uneven}, [{"schedule.cuts": cut} for cut in cuts_of(layers, stages)], False, {}),
            ("all computed again", {"train.recompute": "block"}, [{"train.recompute": how} for how in ("none", "block")], False, {}),
            ("one chunk", kinds[1], kinds, False, {}),
            ("small micro-batch", {"train.micro_batch": 1}, [{"train.micro_batch": size} for size in (1, 2, 4, 8)], True, late)]


def starts(runs, _, most, rows):
    """What plan --search --from RUN --measure 2 makes of bad layouts, beside the best of all that may be chosen."""
    for pipeline, data, layers, device in ((4, 2, 8, "{kind: emulated, description: core}"), (2, 1, 6, "{kind: cpu, threads: 1}")):
        ranks = pipeline * data
        emulated = "emulated" in device
        for name, start, others, moves_bits, beside in bad_starts(pipeline, layers)[:most]:
            base = {"grid.pipeline": pipeline, "grid.data": data, "grid.tensor": 1, "schedule.kind": "1f1b", "schedule.chunks": 1,
                    "train.micro_batch": 4, "train.zero": 0, "train.recompute": "none", **(beside if emulated else {}), **start}
            text = (f"model: {{kind: gpt, layers: {layers}, width: 192, heads: 4, context: 128}}\n"
                    f"data: {{train: [synthetic:arithmetic]}}\ntrain: {{steps: {STEPS}, batch: {8 * ranks}}}\n"
                    f"optimizer: {{kind: adamw, rate: {{kind: constant, peak: 1.0e-3}}}}\ndevice: {device}\n")
            run = runs.run(text, ranks, base)
            found, figures = (os.path.join(runs.folder, file) for file in ("found.yaml", "found.json"))
            fixed = [f"{key}={value}" for key, value in base.items() if key not in start] + [f"{key}=auto" for key in start]
            began = time.monotonic()
            runs.start(ranks, ["plan", "--search", "--from", run, "--measure", "2", "--config", runs.config("run: {dir: unused}\n" + text),
                               "--output", found, "--json", figures] + fixed)
            searched = time.monotonic() - began
            with open(found, encoding="utf-8") as file:
                chosen = runs.run(file.read(), ranks, {})
            period = {"start": runs.replay(run)["measured_period"], "chosen": runs.replay(chosen)["measured_period"]}
            with open(figures, encoding="utf-8") as file:
                predicted = json.load(file)["chosen"]["step_ns"]
            best = min([period["start"], period["chosen"]] +
                       [runs.replay(runs.run(text, ranks, {**base, **other}))["measured_period"] for other in others])
            possible = period["start"] - best
            gained = (period["start"] - period["chosen"]) / possible if possible > WORTH * best else 1
            same = moves_bits or losses(run) == losses(chosen)
            runs.found.add("gain", value=gained)
            runs.found.add("promise", value=predicted / period["chosen"] - 1)
            runs.found.add("losses", value=same)
            runs.found.add("search", value=searched)
            runs.found.add("faster", value=period["chosen"] / period["start"])
            rows.append(["starts", base, name, gained >= 0.9, predicted, period["chosen"], 0])
            print(f"{name}, {ranks} {'emulated' if emulated else 'real'} ranks: {period['start'] / 1e6:.1f} ms, found "
                  f"{period['chosen'] / 1e6:.1f} (said {predicted / 1e6:.1f}, {predicted / period['chosen'] - 1:+.1%}) in "
                  f"{searched:.0f} s, the best of {len(others)} {best / 1e6:.1f}: {gained:.0%} of what can be gained"
                  f"{'' if same else ', OTHER LOSSES'}")


def busy(runs, rng, count, rows):
    """Two real replicas, of which one shares its processor."""
    processors = sorted(os.sched_getaffinity(0))[:2]
    if len(processors) < 2:
        print("busy: there is one processor")
        return
    for _ in range(count):
        victim = rng.randrange(2)
        runs.count += 1
        run = os.path.join(runs.folder, f"run-{runs.count}")
        config = runs.config("model: {kind: gpt, layers: 4, width: 256, heads: 4, context: 128}\ndata: {train: [synthetic:arithmetic]}\n"
                             f"run: {{dir: {run}}}\ngrid: {{data: 2}}\ntrain: {{steps: {STEPS}, batch: 16, micro_batch: 4}}\n"
                             "optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}\ndevice: {kind: cpu, threads: 1}\n")
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        for rank, processor in enumerate(processors):
            command += ([":"] if rank else []) + ["-n", "1", "taskset", "-c", str(processor), runs.binary, "train", "--config", config]
        with subprocess.Popen(["taskset", "-c", str(processors[victim]), sys.executable, "-c", "while True: pass"]) as loop:
            try:
                subprocess.run(command, check=True, capture_output=True, timeout=300)
            finally:
                loop.kill()
        causes = runs.replay(run)["causes"]
        named = bool(causes) and causes[0]["kind"] in ("slow rank", "sometimes slow") and causes[0]["rank"] == victim and \
            "processor" in causes[0]["likely"]
        runs.found.add("busy", value=named)
        rows.append(["busy", {}, f"rank {victim}", named, causes[0]["saves"] if causes else 0, 0, 0])
        print(f"{'right' if named else 'WRONG'} rank {victim}: {causes[0]['text'] if causes else 'nobody accused'}")


def losses(run):
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line).get("loss") for line in file]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build/mindpipe-train"))
    parser.add_argument("--parts", default="culprit,pairs,clean,whatif,lanes,starts,busy")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=os.path.join(ROOT, "runs/bench/replay.csv"))
    asked = parser.parse_args()
    folder, rows = tempfile.mkdtemp(prefix="mindpipe_replay_"), []
    try:
        runs, rng = Runs(asked.binary, folder), random.Random(asked.seed)
        if not runs.first:
            print("chrt may not set a real-time priority here: what others run falls on these figures")
        for name, part, count in (("culprit", culprits, asked.runs), ("pairs", pairs, asked.runs // 2),
                                  ("clean", clean_runs, asked.runs // 2), ("whatif", what_ifs, asked.runs),
                                  ("lanes", lanes, asked.runs // 4), ("starts", starts, 4), ("busy", busy, 5)):
            if name in asked.parts.split(","):
                part(runs, rng, count, rows)
    finally:
        shutil.rmtree(folder)
    os.makedirs(os.path.dirname(asked.output), exist_ok=True)
    with open(asked.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["part", "layout", "change", "right", "said", "truth", "held_out"])
        writer.writerows(rows)
    judged = runs.found.verdicts()
    print("\n" + "\n".join(verdicts.table(judged)) + "\n" + verdicts.summary(judged))
    return 1 if verdicts.missed(judged) else 0


if __name__ == "__main__":
    sys.exit(main())
