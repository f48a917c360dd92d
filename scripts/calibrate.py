#!/usr/bin/env python3
"""Fits a device on paper to steps that were measured, and writes it as a file for device.description.

    scripts/calibrate.py --like a100 --set K --output configs/devices/a100.yaml

Factors of what the bundled device says are moved until plans take as long as the steps of the set: Gauss and
Newton's steps on logarithms, each drawn to what it was, since a few steps do not determine every constant."""

import argparse
import math
import os
import tempfile

import published_steps as steps_of

# Constants as bundled devices have them; half_rate and attention_scores as products and unfused attention of such a device have them.
BUNDLED = {
    "a100": {"flops_bf16": 250e12, "bytes": 1.6e12, "launch": 5e-6, "half_rate": 256.0, "attention_scores": 6.5,
             "links.rate": 230e9, "links.rate_between_nodes": 22e9},
    "h100": {"flops_bf16": 700e12, "bytes": 2.8e12, "launch": 4e-6, "half_rate": 100.0, "attention_scores": 0.0,
             "links.rate": 350e9, "links.rate_between_nodes": 45e9},
}
FEW, SCATTER = 20, 0.1  # of few steps, constants stay near the device's; a plan with the right ones is off by so much


def text_of(like, constants, head=""):
    """The file of a device."""
    flat = [f"{key}: {value:.4g}" for key, value in constants.items() if "." not in key]
    links = [f"  {key[6:]}: {value:.4g}" for key, value in constants.items() if key.startswith("links.")]
    return "\n".join([*head.splitlines(), f"like: {like}", *flat, "links:", *links]) + "\n"


def solve(matrix, right):
    """A system of equations, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right)]
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(len(rows)):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


class Fit:
    """Constants of a device, and how far plans with them are off."""

    def __init__(self, program, like, steps, ignore=()):
        self.program, self.like, self.steps = program, like, steps
        self.drawn = 0.1 if len(steps) < FEW else 0.7  # logarithm of the factor by which a constant may well move
        self.start = {key: value for key, value in BUNDLED[like].items() if key not in ignore}
        self.free = [key for key, value in self.start.items() if value > 0]

    def constants(self, moved):
        return self.start | {key: self.start[key] * math.exp(move) for key, move in zip(self.free, moved)}

    def logarithms(self, moved):
        """Of planned over measured seconds."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "device.yaml")
            with open(file, "w", encoding="utf-8") as out:
                out.write(text_of(self.like, self.constants(moved)))
            planned = steps_of.planned_seconds(self.program, self.steps, file)
        return [math.log(seconds / step.seconds) for step, seconds in zip(self.steps, planned)]

    def badness(self, moved, off):
        return sum((error / SCATTER) ** 2 for error in off) + sum(
            (move / self.drawn) ** 2 for move in moved)

    def run(self, rounds=8, small=0.05):
        moved = [0.0] * len(self.free)
        off = self.logarithms(moved)
        for _ in range(rounds):
            slopes = []
            for i in range(len(moved)):
                beside = [move + small * (j == i) for j, move in enumerate(moved)]
                slopes.append([(b - a) / small for a, b in zip(off, self.logarithms(beside))])
            weight = 1 / self.drawn**2
            matrix = [[sum(a * b for a, b in zip(one, other)) / SCATTER**2 + weight * (i == j)
                       for j, other in enumerate(slopes)] for i, one in enumerate(slopes)]
            right = [-sum(a * b for a, b in zip(slope, off)) / SCATTER**2 - weight * moved[i]
                     for i, slope in enumerate(slopes)]
            step, share = solve(matrix, right), 1.0
            before = self.badness(moved, off)
            while share > 0.05:
                trial = [move + share * max(-1.0, min(1.0, s)) for move, s in zip(moved, step)]
                trial_off = self.logarithms(trial)
                if self.badness(trial, trial_off) < before:
                    break
                share /= 2
            else:
                break
            moved, off = trial, trial_off
            print(f"  mean error {100 * sum(map(abs, off)) / len(off):.2f} %", flush=True)
            if before - self.badness(moved, off) < 0.01 * before:
                break
        return self.constants(moved)


def vtrain_sample(number=64):
    """Every so many-th step of vtrain_single.csv."""
    rows = list(steps_of.vtrain_single())
    return rows[:: len(rows) // number][:number]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(steps_of.ROOT, "build", "mindpipe-train"))
    parser.add_argument("--like", choices=BUNDLED, required=True, help="the bundled device to begin with")
    parser.add_argument("--set", required=True, help="K, N, M or L of published_steps.csv, or vtrain: 64 of vtrain_single.csv")
    parser.add_argument("--output", required=True, help="the file to write")
    arguments = parser.parse_args()
    if arguments.set == "vtrain":
        steps, ignore = vtrain_sample(), ["links.rate_between_nodes"]
    else:
        steps, ignore = [step for step in steps_of.published() if step.group == arguments.set], []
    fit = Fit(arguments.program, arguments.like, steps, ignore)
    constants = fit.run()
    head = (f"# A device on paper: {arguments.like}, with constants fitted by scripts/calibrate.py to "
            f"{len(steps)} steps ({arguments.set}) of data/published.")
    with open(arguments.output, "w", encoding="utf-8") as out:
        out.write(text_of(arguments.like, constants, head))
    planned = steps_of.planned_seconds(arguments.program, steps, arguments.output)
    print("{}: mean error {:.2f} %, worst {:.2f} %".format(
        arguments.output, *(100 * error for error in steps_of.mean_and_worst(steps, planned))))


if __name__ == "__main__":
    main()
