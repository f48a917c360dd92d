#!/usr/bin/env python3
"""Compares, for each bundled configuration, the step of its own layout, of a rule of thumb and of plan --search, all simulated.

    scripts/bench/by_hand.py [--binary build/mindpipe-train] [--only NAME ...]

The rule of thumb: as many tensor ranks as a node and the model allow, the fewest stages that fit, data ranks for the rest. It prints
a table in Markdown; exit code 1 if a search is slower than one of the others."""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS = {"gpt2-1.5b": 32, "llama-8b": 64}  # others: 8, or 4 on processors
NODE = 8
EQUAL = 1.001  # the search takes the simpler of layouts that are as near as that
OPEN = ["grid=auto", "schedule=auto", "train.zero=auto", "train.recompute=auto", "train.sequence_parallel=auto"]


class Planner:
    """Asks the program for plans of one configuration."""

    def __init__(self, binary, name):
        self.binary, self.file = binary, os.path.join(ROOT, "configs", name + ".yaml")
        text = open(self.file, encoding="utf-8").read()
        self.trains_subnets = "kind: supernet" in text
        self.is_small = "-tiny" in name or name in ("demo", "evolved-transformer-dates", "supernet-dates", "supernet-text")
        self.ranks = RANKS.get(name, 4 if self.is_small else 8)
        self.device = [] if self.is_small else ["device.kind=cuda", "device.description=h200", "memory.device_limit=130GiB"]

    def ask(self, words):
        """The figures of a plan, or none where it is refused or does not fit."""
        with tempfile.NamedTemporaryFile(suffix=".json") as figures:
            command = [self.binary, "plan", "--config", self.file, "--ranks", str(self.ranks), "--json", figures.name]
            done = subprocess.run(command + self.device + words, cwd=ROOT, capture_output=True, text=True, check=False)
            return json.load(open(figures.name, encoding="utf-8")) if done.returncode == 0 else None

    def simulated(self, words):
        plan = self.ask(["--simulate"] + words)
        return plan and plan.get("step_ns", plan.get("subnet_ns"))

    def searched(self):
        plan = self.ask(["--search"] + (["grid=auto", "supernet.cuts=auto"] if self.trains_subnets else OPEN))
        return (plan["chosen"]["step_ns"], plan["settings"]) if plan else (None, "")

    def own(self):
        """The layout of the file, with data ranks for what it leaves over, or stages where its data shards are too few."""
        for words in ([], ["grid.data=auto"], [f"grid.data={self.ranks}"], ["grid.data=2", "grid.pipeline=auto"]):
            step = self.simulated(words)
            if step:
                return step
        return None

    def rule_of_thumb(self):
        if self.trains_subnets:
            return self.simulated(["grid.supernet=1", f"grid.pipeline={self.ranks}", "grid.data=1", "grid.tensor=1"])
        for tensor in [t for t in (8, 4, 2, 1) if t <= NODE and self.ranks % t == 0]:
            for stages in [p for p in range(1, self.ranks // tensor + 1) if self.ranks // tensor % p == 0]:
                step = self.simulated([f"grid.tensor={tensor}", f"grid.pipeline={stages}", "grid.data=auto",
                                       "reproducible.tensor=auto", "reproducible.data=auto"])
                if step:
                    return step
        return None


def human(nanoseconds):
    return "none" if not nanoseconds else f"{nanoseconds * 1e-6:.3g} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    names = [os.path.basename(path)[:-5] for path in sorted(glob.glob(os.path.join(ROOT, "configs", "*.yaml")))]
    slower = []
    print("| configuration | ranks | as written | rule of thumb | search | chosen |\n|---|---|---|---|---|---|")
    for name in arguments.only or names:
        planner = Planner(os.path.abspath(arguments.binary), name)
        own, thumb, (found, settings) = planner.own(), planner.rule_of_thumb(), planner.searched()
        print(f"| `{name}` | {planner.ranks} | {human(own)} | {human(thumb)} | {human(found)} | {settings} |", flush=True)
        if not found or any(other and found > other * EQUAL for other in (own, thumb)):
            slower.append(name)
    if slower:
        sys.exit("by_hand.py: the search is slower, or finds nothing, for " + ", ".join(slower))


if __name__ == "__main__":
    main()
