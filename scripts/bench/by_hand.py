#!/usr/bin/env python3
"""Compares, for each bundled configuration, the step of its own layout, of a rule of thumb and of plan --search.

    scripts/bench/by_hand.py [--binary build/mindpipe-train] [--parts simulated,measured] [--only NAME ...]

The rule of thumb: as many tensor ranks as a node and the model allow, the fewest stages that fit, data ranks for the rest. simulated:
all configurations, on paper. measured: three large models on eight emulated ranks, and four small ones on two ranks that compute here,
whose search goes by a profile; the layouts run in turn, seven times. The emulated device is an H200 on which all takes twelve times as
long: eight ranks share two processors here. It prints a table in Markdown; exit code 1 if a search is slower
than one of the others: on paper at all, measured by more than 1 % in the median of the pairs."""

import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from running import at_once

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS = {"gpt2-1.5b": 32, "llama-8b": 64}  # others: 8, or 4 on processors
NODE = 8
EQUAL = 1.001  # the search takes the simpler of layouts that are as near as that
OPEN = ["grid=auto", "schedule=auto", "train.zero=auto", "train.recompute=auto", "train.sequence_parallel=auto"]

LARGE_MEASURED = {"bert-large": "synthetic:arithmetic", "gpt2-124m": "data/alice.txt", "transformer-base": "synthetic:dates"}
SMALL_MEASURED = ("bert-tiny", "gpt-tiny", "transformer-tiny", "vit-tiny")
TURNS, WARM_UP, ALLOWED = 7, 2, 0.99
STEPS_EMULATED, STEPS = 5, 60  # the small models' take 10 ms
TIMES = 12  # of each rate that the bundled h200 has
SLOW_H200 = f"""like: h200
flops_f32: {50e12 / TIMES}
flops_bf16: {700e12 / TIMES}
bytes: {4e12 / TIMES}
launch: {4e-6 * TIMES}
links: {{latency: {8e-6 * TIMES}, rate: {350e9 / TIMES}}}
"""
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


class Planner:
    """Asks the program for plans of one configuration. `device`: words in place of those of the table's device."""

    def __init__(self, binary, name, ranks=0, device=None):
        self.binary, self.file = binary, os.path.join(ROOT, "configs", name + ".yaml")
        text = open(self.file, encoding="utf-8").read()
        self.trains_subnets = "kind: supernet" in text
        is_small = "-tiny" in name or name in ("demo", "evolved-transformer-dates", "supernet-dates", "supernet-text")
        self.ranks = ranks or RANKS.get(name, 4 if is_small else 8)
        self.device = device
        if device is None:
            self.device = [] if is_small else ["device.kind=cuda", "device.description=h200", "memory.device_limit=130GiB"]

    def ask(self, words):
        """The figures of a plan, or none where it is refused or does not fit."""
        command = [self.binary, "plan", "--config", self.file, "--ranks", str(self.ranks), "--json", "-"]
        done = subprocess.run(command + self.device + words, cwd=ROOT, capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def run(self, words):
        """Runs a verb on all ranks, emulated ones at real-time priority."""
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(self.ranks), self.binary, *words, "--config", self.file]
        first = at_once() if "device.kind=emulated" in words else []
        done = subprocess.run(first + command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"by_hand.py: '{' '.join(command)}' ended with {done.returncode}:\n{done.stderr[-2000:]}")

    def simulated(self, words):
        plan = self.ask(["--simulate"] + words)
        return plan and plan.get("step_ns", plan.get("subnet_ns"))

    def searched(self):
        """Words of the best layout, and its step."""
        plan = self.ask(["--search"] + (["grid=auto", "supernet.cuts=auto"] if self.trains_subnets else OPEN))
        return (words_in(plan["settings"]), plan["chosen"]["step_ns"]) if plan else ([], None)

    def first_that_fits(self, layouts):
        for words in layouts:
            step = self.simulated(words)
            if step:
                return words, step
        return [], None

    def own(self):
        """The layout of the file, with data ranks for what it leaves over, or stages where its data shards are too few."""
        return self.first_that_fits(([], ["grid.data=auto"], [f"grid.data={self.ranks}"], ["grid.data=2", "grid.pipeline=auto"]))

    def rule_of_thumb(self):
        if self.trains_subnets:
            return self.first_that_fits([["grid.supernet=1", f"grid.pipeline={self.ranks}", "grid.data=1", "grid.tensor=1"]])
        return self.first_that_fits(
            [f"grid.tensor={tensor}", f"grid.pipeline={stages}", f"grid.data={self.ranks // tensor // stages}", "reproducible.tensor=auto",
             "reproducible.data=auto"]
            for tensor in (8, 4, 2, 1) if tensor <= NODE and self.ranks % tensor == 0
            for stages in range(1, self.ranks // tensor + 1) if self.ranks // tensor % stages == 0)


def words_in(settings):
    """Settings that a line holds; lists have spaces between their brackets."""
    return re.split(r" (?=[a-z_]+\.)", settings)


def human(nanoseconds):
    return "none" if not nanoseconds else f"{nanoseconds * 1e-6:.3g} ms"


def simulate(binary, only):
    """Names of those whose search is slower, or finds nothing."""
    names = [os.path.basename(path)[:-5] for path in sorted(glob.glob(os.path.join(ROOT, "configs", "*.yaml")))]
    slower = []
    print("| configuration | ranks | as written | rule of thumb | search | chosen |\n|---|---|---|---|---|---|")
    for name in only or names:
        planner = Planner(binary, name)
        (_, own), (_, thumb), (settings, found) = planner.own(), planner.rule_of_thumb(), planner.searched()
        print(f"| `{name}` | {planner.ranks} | {human(own)} | {human(thumb)} | {human(found)} | {' '.join(settings)} |", flush=True)
        if not found or any(other and found > other * EQUAL for other in (own, thumb)):
            slower.append(name)
    return slower


def measured(planner, words):
    """The median of a training's steps, in nanoseconds."""
    steps = STEPS_EMULATED if "device.kind=emulated" in planner.device else STEPS
    with tempfile.TemporaryDirectory() as run:
        planner.run(["train", *planner.device, *words, f"run.dir={run}", f"train.steps={steps}", "train.evaluate_every=0",
                     "checkpoint.every=0", "optimizer.rate.warmup=0", "energy.meter=none"])
        emulated = os.path.join(run, "metrics.emulated.jsonl")
        with open(emulated if os.path.exists(emulated) else os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
            seconds = [json.loads(line).get("seconds") for line in file]
        return 1e9 * statistics.median([one for one in seconds if one][WARM_UP:])


def planners_to_measure(binary, only, folder):
    slow = os.path.join(folder, "slow_h200.yaml")
    with open(slow, "w", encoding="utf-8") as file:
        file.write(SLOW_H200)
    for name, samples in LARGE_MEASURED.items():
        if not only or name in only:
            yield name, Planner(binary, name, 8, ["device.kind=emulated", f"device.description={slow}", "device.threads=1",
                                                  f"data.train=[{samples}]", f"data.validation=[{samples}]"])
    for name in SMALL_MEASURED:
        if not only or name in only:
            profile = os.path.join(folder, name + ".yaml")
            planner = Planner(binary, name, 2, ["device.threads=1", f"device.profile={profile}"])
            planner.run(["profile", "--output", profile, "--budget", "20s", "device.threads=1", *OPEN])
            yield name, planner


def measure(binary, only):
    """Names of those whose search is more than 1 % slower."""
    slower = []
    print("| configuration | ranks | as written | rule of thumb | search | its speed, of each | chosen |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, planner in planners_to_measure(binary, only, folder):
            layouts = [planner.own()[0], planner.rule_of_thumb()[0], planner.searched()[0]]
            turns = [[measured(planner, words) for words in layouts] for _ in range(TURNS)]
            own, thumb, found = (statistics.median(column) for column in zip(*turns))
            speeds = [statistics.median(turn[other] / turn[2] for turn in turns) for other in (0, 1)]
            ranks = f"{planner.ranks}, emulated" if name in LARGE_MEASURED else f"{planner.ranks}"
            print(f"| `{name}` | {ranks} | {human(own)} | {human(thumb)} | {human(found)} | {speeds[0]:.2f} x, {speeds[1]:.2f} x | "
                  f"{' '.join(layouts[2])} |", flush=True)
            if min(speeds) < ALLOWED:
                slower.append(name)
    return slower


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--parts", default="simulated,measured")
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    parts = {"simulated": simulate, "measured": measure}
    slower = [name for part in arguments.parts.split(",") for name in parts[part](os.path.abspath(arguments.binary), arguments.only)]
    if slower:
        sys.exit("by_hand.py: the search is slower, or finds nothing, for " + ", ".join(slower))


if __name__ == "__main__":
    main()
