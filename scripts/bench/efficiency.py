#!/usr/bin/env python3
"""What a larger batch is worth: one small model is trained to one loss with five batches, and steps are counted.

    efficiency.py [--binary build/mindpipe-train] [--loss 2.1] [--batches 4,8,16,32,64] [--seeds 3] [--output runs/bench/efficiency.csv]

Steps to a loss are held against S = S_min (1 + phi / B) (McCandlish et al., 2018), and the phi of that curve against the noise scale
that the same trainings measure (train.noise_every). Each batch has the rate, of three, that comes to the loss in the fewest steps with
the first seed: another batch wants another rate. Where a curve of evaluations passes the loss is found between two of them. Steps do
not depend on how fast a machine is, so two trainings run at once and other work does no harm."""

import argparse
import concurrent.futures
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import verdicts
from verdicts import Must

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = {"model.layers": 2, "model.width": 64, "model.heads": 4, "model.context": 64, "optimizer.rate.kind": "constant",
         "optimizer.rate.warmup": 20, "optimizer.weight_decay": 0, "train.micro_batch": 2, "reproducible.data": 2,
         "reproducible.tensor": 1, "train.evaluate_batches": 8, "checkpoint.every": 0, "device.threads": 1, "energy.meter": "none",
         "trace.steps": 0}
RATES = (0.5, 1.0, 2.0)
MUSTS = (
    Must("curve", "steps off the curve S = S_min (1 + phi / B), worst batch", 0.15, True, "%"),
    Must("noise", "the measured noise scale and the curve's, the larger over the smaller", 2, True, "x"),
    Must("reached", "trainings that come to the loss", 1, False, "%"),
)
PARTS = 5
EXPECTED_PHI = 10  # where the rates of batches are tried: around a peak times the root of 1 / (1 + phi / B)


def crossing(evaluations, loss):
    """The step at which a curve of (step, loss) first comes below a loss; none: it does not."""
    before = None
    for step, value in evaluations:
        if value <= loss:
            if before is None:
                return float(step)
            return before[0] + (step - before[0]) * (before[1] - loss) / (before[1] - value)
        before = (step, value)
    return None


class Trainings:
    def __init__(self, binary, folder, loss, peak):
        self.binary, self.folder, self.loss, self.peak = binary, folder, loss, peak

    def train(self, batch, seed, factor):
        """Steps to the loss, and the mean of the noise scale over the way there."""
        steps = int(12000 / batch + 500)
        every = max(5, steps // 100)
        rate = self.peak * factor / math.sqrt(1 + EXPECTED_PHI / batch)
        run = tempfile.mkdtemp(dir=self.folder)
        settings = {**MODEL, "seed": seed, "train.batch": batch, "train.steps": steps, "train.evaluate_every": every,
                    "train.noise_every": every, "optimizer.rate.peak": f"{rate:.6f}", "run.dir": run}
        command = [self.binary, "--config", os.path.join(ROOT, "configs", "gpt-tiny.yaml"),
                   *(f"{key}={value}" for key, value in settings.items())]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"efficiency.py: '{' '.join(command)}' ended with {done.returncode}:\n{done.stderr[-2000:]}")
        with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        there = crossing([(line["step"], line["validation_loss"]) for line in lines if "validation_loss" in line], self.loss)
        if there is None:
            return None
        measured = [line for line in lines if "gradient_signal" in line and line["step"] <= there]
        return there, mean_noise([(line["gradient_noise"], line["gradient_signal"]) for line in measured])


def mean_noise(measured):
    """The mean over fifths of the way, each the ratio of its sums of noise and signal. All steps count alike, the first ones with their
    large gradients too: S is the sum of 1 + phi / B over the steps that no noise would lengthen."""
    edges = [len(measured) * part // PARTS for part in range(PARTS + 1)]
    sums = [[sum(column) for column in zip(*measured[first:last])] for first, last in zip(edges, edges[1:]) if first < last]
    scales = [noise / signal for noise, signal in sums if signal > 0]
    return statistics.mean(scales) if scales else math.nan


def fitted(points):
    """S_min and phi of S = S_min (1 + phi / B) with the least sum of squared relative errors, and the largest of these errors."""
    # Divided by S the curve is linear in S_min and S_min phi: two normal equations.
    rows = [(1 / steps, 1 / (batch * steps)) for batch, steps in points]
    aa, ab, bb = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(row[i] for row in rows) for i in (0, 1))
    determinant = aa * bb - ab * ab
    least, product = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    phi = product / least
    worst = max(abs(least * (1 + phi / batch) / steps - 1) for batch, steps in points)
    return least, phi, worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--loss", type=float, default=2.1)
    parser.add_argument("--peak", type=float, default=4e-3, help="the rate of a batch without noise")
    parser.add_argument("--batches", default="4,8,16,32,64")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", default=os.path.join(ROOT, "runs", "bench", "efficiency.csv"))
    arguments = parser.parse_args()
    batches = [int(batch) for batch in arguments.batches.split(",")]
    os.makedirs(os.path.dirname(os.path.abspath(arguments.output)), exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        trainings = Trainings(os.path.abspath(arguments.binary), folder, arguments.loss, arguments.peak)
        tried = {(batch, factor): pool.submit(trainings.train, batch, 1, factor) for batch in batches for factor in RATES}
        best = {}
        for batch in batches:
            there = {factor: tried[batch, factor].result() for factor in RATES}
            reached = {factor: found for factor, found in there.items() if found}
            if not reached:
                sys.exit(f"efficiency.py: no rate brings batch {batch} to a loss of {arguments.loss}; ask for a larger one")
            best[batch] = min(reached, key=lambda factor: reached[factor][0])
            rows.append((batch, 1, best[batch], *reached[best[batch]]))
        others = {(batch, seed): pool.submit(trainings.train, batch, seed, best[batch])
                  for seed in range(2, arguments.seeds + 1) for batch in batches}
        for (batch, seed), training in others.items():
            if training.result():
                rows.append((batch, seed, best[batch], *training.result()))
    with open(arguments.output, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["batch", "seed", "rate_factor", "steps", "noise_scale"])
        writer.writerows(sorted(rows))
    points = [(batch, statistics.mean(row[3] for row in rows if row[0] == batch)) for batch in batches]
    least, phi, worst = fitted(points)
    measured = statistics.median(row[4] for row in rows if not math.isnan(row[4]))
    for batch, steps in points:
        print(f"batch {batch}: {steps:.0f} steps to a loss of {arguments.loss}, {least * (1 + phi / batch):.0f} by the curve; "
              f"rate factor {best[batch]}")
    print(f"S = {least:.0f} (1 + {phi:.1f} / B), at most {100 * worst:.1f} % off; the trainings measured a noise scale of {measured:.1f}, "
          f"{measured / phi:.2f} times as much")
    print(f"written to {arguments.output}")
    ratio = measured / phi
    judged = verdicts.judge({"curve": worst, "noise": max(ratio, 1 / ratio), "reached": len(rows) / (len(batches) * arguments.seeds)},
                            verdicts.Machine("", False), musts=MUSTS)
    print("\n" + "\n".join(verdicts.table(judged)) + "\n" + verdicts.summary(judged))
    return 1 if verdicts.missed(judged) else 0


if __name__ == "__main__":
    sys.exit(main())
