#!/usr/bin/env python3
"""What replay says of emulated runs, beside what is known of them.

    replay.py [--binary build/mindpipe-train] [--parts covering,culprit,pairs,clean,whatif,real,lanes,starts,busy] [--runs 40] [--seed 1]
              [--output runs/bench/replay.csv]

covering: layouts of all schedules on 2 to 16 ranks, of which replay has to give the run back. culprit: runs of 4 to 16 ranks with one fault
each, of eight kinds in turn (a slow rank, a link that is slow, every seventh step slow, unequal stages, unequal micro-batches, jitter, sums
that hold up messages, a late begin of each step) that costs a step 2 % or more: whether the first cause that replay names is that one, and
what it says that it costs beside what a step really gains without the fault.
pairs: half as many runs with two faults, both of which should be among the first three causes.
clean: half as many runs without a fault, of which nobody may be accused. whatif: other programs, slower ranks and links, and free
sums, predicted from one trace each and then run; real: the same of two real ranks, in turn with the traced layout; lanes: the same of
supernets, a quarter as many. starts: four bad layouts of eight emulated ranks and of two real ones, what plan
--search --from makes of each, and the best layout that running all of them finds. busy: five runs of two real ranks, each held on a
processor of its own, of which one has to share it with a loop that computes for nothing. Of all runs: how well the replay gives its own
times back, and how far the medians of every second step are off those of the others. At the end stands each figure beside what is asked of
it (replay_musts.py); one that is missed ends the script with 1. Ranks run at real-time priority where chrt may set it, so the machine
should do nothing else; a run beside which processors ran others for 2 % of a step, and of which steps differ, is made again."""

import argparse
import csv
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import verdicts
from replay_cells import (COVERING, FAULTS, GRIDS, STEPS, WhatIf, draw_fault, layout, of_settings, other_grids, paired, same_grid,
                          settings_for)
from replay_runs import ROOT, Runs, losses, supernet_text

WORTH = 0.02


def culprits(runs, rng, count, rows, kinds=FAULTS):
    """One fault each, of all kinds in turn."""
    done = tries = 0
    while done < count and tries < 4 * count:
        kind = kinds[tries % len(kinds)]
        tries += 1
        settings = settings_for(rng, kind)
        clean = runs.observe(settings)
        if "refused" in clean:
            print(f"refused: {clean['refused']}")
            continue
        fault = draw_fault(rng, settings, kind, clean["cuts"])
        found = runs.observe({**settings, **fault.settings}, fault.inject)
        if "refused" in found:
            print(f"refused: {found['refused']}")
            done += 1
            continue
        costs = found["measured_period"] - clean["measured_period"]
        if costs < WORTH * clean["measured_period"]:
            print(f"too cheap: {fault} costs {costs / 1e6:.2f} ms of {clean['measured_period'] / 1e6:.1f} ms")
            continue
        done += 1
        first = found["causes"][0] if found["causes"] else None
        named = bool(first) and fault.is_named_by(first)
        close = named and abs(first["saves"] - costs) <= max(0.15 * costs, 1e6)
        runs.found.add("culprit", value=named)
        runs.found.add("cost", value=close)
        rows.append(["culprit", {**settings, **fault.settings}, str(fault), named, first["saves"] if first else 0, costs,
                     found["held_out"]])
        print(f"{'right' if close else 'named' if named else 'WRONG'} {fault}: {first['text'] if first else 'nobody accused'} "
              f"(in truth {costs / 1e6:.2f} ms)")


def pairs(runs, rng, count, rows):
    """Two faults at once, of different ranks."""
    kinds = [kind for kind in FAULTS if kind not in ("contention", "stages", "seventh")]
    done = 0
    while done < count:
        settings = layout(rng, rng.choice(GRIDS))
        two = [draw_fault(rng, settings, rng.choice(kinds)) for _ in range(2)]
        if two[0].culprit == two[1].culprit:
            continue
        costs = [runs.observe(settings, fault.inject)["measured_period"] for fault in two]
        clean = runs.observe(settings)["measured_period"]
        if min(costs) < (1 + WORTH) * clean:
            continue
        done += 1
        inject = ",".join(fault.inject for fault in two)
        causes = runs.observe(settings, inject)["causes"][:3]
        both = all(any(fault.is_named_by(cause) for cause in causes) for fault in two)
        runs.found.add("pairs", value=both)
        rows.append(["pairs", settings, inject, both, 0, 0, 0])
        print(f"{'both' if both else 'WRONG'} {inject}: {'; '.join(cause['text'] for cause in causes) or 'nobody accused'}")


def clean_runs(runs, rng, count, rows):
    for _ in range(count):
        settings = layout(rng, rng.choice(GRIDS))
        found = runs.observe(settings)
        causes = found.get("causes", [])
        runs.found.add("clean", value=not causes)
        rows.append(["clean", settings, "", not causes, 0, 0, found.get("held_out", 0)])
        if causes:
            print(f"accused: {causes[0]['text']} of {settings}")


def judge(runs, change, predicted, truth, before, kind=""):
    """Adds how far a prediction was off, where a step took `before`; `kind`: real runs have a figure of their own. Gives back the error."""
    error = predicted["period"] / truth - 1
    if change.other_grid:
        runs.found.add("other" + kind, value=error)
        runs.found.add_order(predicted["period"] / before, truth / before)
    else:
        runs.found.add("same", "same worst", value=error)
    runs.found.add("inside", value=predicted["least"] <= truth <= predicted["most"])
    return error


def what_ifs(runs, rng, count, rows):
    """Other programs and times of traced ones: two in three on the same grid, and one on another."""
    for number in range(count):
        settings = layout(rng, rng.choice(GRIDS))
        if number % 3 == 2:
            change = rng.choice(other_grids(settings))
        else:
            cuts = runs.observe(settings)["cuts"] if settings["schedule.chunks"] == 1 else None
            changes = same_grid(settings, cuts)
            change = changes[number % len(changes)]
        settings.update(change.base)
        if change.backward != 1:
            settings["device.profile"], scaled = runs.prices(settings, change.backward)
            change.settings["device.profile"] = scaled
        said = runs.observe(settings, what_if=change.asked)
        truth = runs.observe({**settings, **change.settings}, change.inject)
        if "refused" in said or "refused" in truth:
            print(f"refused: {said.get('refused', truth.get('refused'))}")
            continue
        predicted = said["changes"][0 if change.asked[0] == "--scale" else -1]["expected"]
        error = judge(runs, change, predicted, truth["expected"]["period"], said["expected"]["period"])
        rows.append(["whatif", settings, str(change), abs(error) <= 0.03, predicted["period"], truth["expected"]["period"],
                     said["held_out"]])
        print(f"{error:+.2%} {change} of {settings} (expected before {said['expected']['period'] / 1e6:.1f} ms, now "
              f"{truth['expected']['period'] / 1e6:.1f})")


def real_what_ifs(runs, _, turns, rows):
    """What-ifs of two real ranks, which run in turn with the traced layout: ratios."""
    layers = {"grid.pipeline": 2, "grid.data": 1, "schedule.kind": "1f1b", "schedule.chunks": 1, "train.zero": 0, "train.batch": 32,
              "train.micro_batch": 4, "device.kind": "cpu", "device.threads": 1, "device.description": ""}
    replicas = {**layers, "grid.pipeline": 1, "grid.data": 2}
    for settings, changes in (
            (layers, [WhatIf(["--scale", "rank:1=1.5"], inject="slow@1:1:1.5"), of_settings({"schedule.kind": "gpipe"}),
                      of_settings({"schedule.kind": "zb-h1"}), of_settings({"train.micro_batch": 8}), of_settings({"schedule.cuts": "[7]"}),
                      of_settings({"train.recompute": "block"}), of_settings({"grid.pipeline": 1, "grid.data": 2})]),
            (replicas, [of_settings({"train.zero": 1}), of_settings({"train.micro_batch": 2}),
                        of_settings({"grid.pipeline": 2, "grid.data": 1})])):
        for change in changes:
            measured, predicted = [], []
            for _ in range(turns):
                said, truth = runs.replay(runs.train(settings), *change.asked), \
                    runs.replay(runs.train({**settings, **change.settings}, change.inject))
                measured.append(truth["expected"]["period"] / said["expected"]["period"])
                predicted.append({key: value / said["expected"]["period"] for key, value in
                                  said["changes"][0 if change.asked[0] == "--scale" else -1]["expected"].items()})
            truth, off = paired(measured)
            said = {key: statistics.median(one[key] for one in predicted) for key in ("period", "least", "most")}
            error = judge(runs, change, said, truth, 1, " real")
            rows.append(["real", settings, str(change), abs(error) <= 0.1, said["period"], truth, 0])
            print(f"{error:+.2%} {change} of two real ranks: x {truth:.3f} +- {off:.3f}, said x {said['period']:.3f}")


def lanes(runs, rng, count, rows):
    """Other lanes, stages, cuts and rooms of traced supernets."""
    text = supernet_text()
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


def covering(runs, _, __, rows):
    """One layout of each schedule, sharding, sum and table, on 2 to 16 ranks: whether replay gives the run back."""
    for settings in COVERING:
        lanes_of = settings.get("grid.supernet")
        if lanes_of:
            ranks = lanes_of * settings["grid.pipeline"]
            run = runs.run(supernet_text(), ranks, {"train.steps": 96, "trace.steps": 48, "train.evaluate_every": 0, **settings})
        else:
            run = runs.train(settings)
        said = runs.replay(run)
        error = said["replayed_period"] / said["measured_period"] - 1 if "refused" not in said else 1
        runs.found.add("covering", value=abs(error) <= 0.005)
        rows.append(["covering", settings, "", abs(error) <= 0.005, said.get("replayed_period", 0), said.get("measured_period", 0),
                     said.get("held_out", 0)])
        print(f"{error:+.4%}, every begin within {said.get('largest_difference', 0) / 1e3:.1f} us, held out {said.get('held_out', 0):+.2%} "
              f"(by plain averages {said.get('held_out_plain', 0):+.2%}): {settings} {said.get('refused', '')}")


def cuts_of(layers, stages):
    """All ways to cut a table, whole layers and a head into stages, none more than a layer and a half beyond an equal share. A layer is
    two blocks."""
    parts = layers + 2
    for cut in itertools.combinations(range(1, parts), stages - 1):
        edges = (0, *cut, parts)
        if max(edges[k + 1] - edges[k] for k in range(stages)) <= parts / stages + 1.5:
            yield "[" + ",".join(str(2 * part - 1) for part in cut) + "]"


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


def is_not_slower(period, start, chosen, turns=3):
    """Whether what was chosen is not slower than the start. Where single runs leave that open, both run in turn, and pairs say it."""
    if period["chosen"] < 0.97 * period["start"]:
        return True
    mean, off = paired([chosen()["expected"]["period"] / start()["expected"]["period"] for _ in range(turns)])
    return mean - off <= 1


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
            def observed(settings, configuration=text, on=ranks):
                return runs.observe(settings, train=lambda given, _: runs.run(configuration, on, given))

            before = observed(base)
            found, figures = (os.path.join(runs.folder, file) for file in ("found.yaml", "found.json"))
            fixed = [f"{key}={value}" for key, value in base.items() if key not in start] + [f"{key}=auto" for key in start]
            began = time.monotonic()
            runs.start(ranks, ["plan", "--search", "--from", before["run"], "--measure", "2", "--config",
                               runs.config("run: {dir: unused}\n" + text), "--output", found, "--json", figures] + fixed)
            searched = time.monotonic() - began
            with open(found, encoding="utf-8") as file:
                chosen_text = file.read()
            chosen = observed({}, chosen_text)
            period = {"start": before["expected"]["period"], "chosen": chosen["expected"]["period"]}
            with open(figures, encoding="utf-8") as file:
                predicted = json.load(file)["chosen"]["step_ns"]
            best = min([period["start"], period["chosen"]] + [observed({**base, **other})["expected"]["period"] for other in others])
            possible = period["start"] - best
            gained = (period["start"] - period["chosen"]) / possible if possible > WORTH * best else 1
            same = moves_bits or losses(before["run"]) == losses(chosen["run"])
            runs.found.add("gain", value=gained)
            runs.found.add("promise", value=predicted / period["chosen"] - 1)
            runs.found.add("losses", value=same)
            runs.found.add("search", value=searched)
            runs.found.add("faster", value=is_not_slower(period, lambda: observed(base), lambda: observed({}, chosen_text)))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build/mindpipe-train"))
    parser.add_argument("--parts", default="covering,culprit,pairs,clean,whatif,real,lanes,starts,busy")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=os.path.join(ROOT, "runs/bench/replay.csv"))
    asked = parser.parse_args()
    folder, rows = tempfile.mkdtemp(prefix="mindpipe_replay_"), []
    try:
        runs, rng = Runs(asked.binary, folder), random.Random(asked.seed)
        if not runs.first:
            print("chrt may not set a real-time priority here: what others run falls on these figures")
        for name, part, count in (("covering", covering, 1), ("culprit", culprits, asked.runs), ("pairs", pairs, asked.runs // 2),
                                  ("clean", clean_runs, asked.runs // 2), ("whatif", what_ifs, asked.runs), ("real", real_what_ifs, 3),
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
