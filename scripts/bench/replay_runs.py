"""Runs that replay.py makes, and what the program says of them."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from replay_cells import STEPS, layers_of, scaled_backwards
from replay_musts import Found
from running import ROOT, at_once
from traced_steps import lists_of

MUCH_DELAY, UNLIKE = 0.02, 0.01


class Runs:
    """Emulated runs in a folder of their own."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.count, self.found = binary, folder, 0, Found()
        self.first = at_once()

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

    @staticmethod
    def text_of(settings):
        ranks = settings["grid.pipeline"] * settings.get("grid.data", 1) * settings.get("grid.tensor", 1)
        width = 192 if ranks <= 8 else 272
        return (f"model: {{kind: gpt, layers: {layers_of(settings)}, width: {width}, heads: 4, context: 128}}\n"
                "data: {train: [synthetic:arithmetic]}\n"
                f"train: {{steps: {STEPS}, batch: 32, micro_batch: 4}}\n"
                "optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}\n"
                "device: {kind: emulated, description: core}\n")

    def train(self, settings, inject=""):
        ranks = settings["grid.pipeline"] * settings.get("grid.data", 1) * settings.get("grid.tensor", 1)
        return self.run(self.text_of(settings), ranks, settings, inject)

    def prices(self, settings, factor):
        """Two profiles: what passes of a layout take, by a trace of it, and the same with backwards so many times as long."""
        run, ranks = self.train(settings), settings["grid.pipeline"] * settings["grid.data"]
        subprocess.run([self.binary, "plan", "--search", "--from", run, "--ranks", str(ranks), "--config",
                        self.config(self.text_of(settings)), "run.dir=unused"] + [f"{key}={value}" for key, value in settings.items()],
                       check=True, capture_output=True)
        own, scaled = (os.path.join(self.folder, f"prices-{self.count}-{name}.yaml") for name in ("own", "scaled"))
        shutil.copy(os.path.join(run, "replay", "prices.yaml"), own)
        with open(own, encoding="utf-8") as prices, open(scaled, "w", encoding="utf-8") as file:
            file.write(scaled_backwards(prices.read(), factor))
        return own, scaled

    def observe(self, settings, inject="", what_if=(), train=None):
        """What replay says of a training, which is made again, twice at most, where others disturbed it; its run directory, and where its
        stages begin."""
        for _ in range(3):
            run = (train or self.train)(settings, inject)
            said = self.replay(run, *what_if)
            if not is_disturbed(said):
                break
        said.update(run=run, cuts=cuts_of_run(run))
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
            self.found.add("plain", value=said["held_out_plain"])
        return said


def is_disturbed(said):
    """Whether processors ran others for much of the steps, and single steps show it. More ranks than processors wait for each other, too,
    in steps that are all alike."""
    delayed = said.get("run_delay", 0) >= MUCH_DELAY * said.get("measured_period", 1)
    return delayed and abs(said["measured_period"] / said["expected"]["period"] - 1) >= UNLIKE


def cuts_of_run(run):
    """The first block of each stage but the first, of a run of one chunk a stage."""
    lists = lists_of(os.path.join(run, "replay", "trace.safetensors"))
    return [min(action["first"] for action in actions if action["kind"] == 0) for actions in lists[1:]]


def supernet_text():
    with open(os.path.join(ROOT, "configs", "supernet-tiny.yaml"), encoding="utf-8") as file:
        return file.read().replace("configs/spaces", os.path.join(ROOT, "configs", "spaces"))


def losses(run):
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line).get("loss") for line in file]
