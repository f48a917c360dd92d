#!/usr/bin/env python3
"""Whether scores of a search can be trusted: networks that are trained from scratch beside what a supernet's weights say of them.

    test_ranking.py PROGRAM [--parts text,dates,halving] [--seeds 1,2,3] [--runs FOLDER]

  text     all 81 networks of configs/supernet-text.yaml, each trained from scratch. Kendall's tau-b between these losses and the scores of
           supernets of three samplers and two windows; where the network that a search with 40 scores finds stands among the 81.
           Must: with permutation and windows of 16 tau is 0.3 or more with p < 0.01 for each seed, and the found network is one of
           the best 12 for two of three seeds (aim: of the best 4, for all).
  dates    configs/supernet-dates.yaml: a found network, trained from scratch, against ten drawn ones with the same budget. Must: it
           beats eight of them for two of three seeds (aim: for all). Random search with as many scores beside it, and tau over 16
           networks.
  halving  80 of the 81 networks in rounds, each going on from the round before, and from scratch: the same survivors in the same
           order; what is done is not done again.

Two programs of one thread run at a time. Runs are kept in --runs, where one is named, and are then not done again. Exits 1 where a must is
missed.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PARTS = ("text", "dates", "halving")
SUPERNETS = [(sampler, window) for window in (16, 4) for sampler in ("uniform", "permutation", "spaced")]
JUDGED = ("permutation", 16)
STOPPED = 75  # the exit code of a run that run.stop_after ends


class Runs:
    """Calls of the program, two at a time, below one folder."""

    def __init__(self, program, folder):
        self.program, self.folder = os.path.abspath(program), pathlib.Path(folder).resolve()
        self.pool = concurrent.futures.ThreadPoolExecutor(2)

    def at_once(self, function, *lists):
        return list(self.pool.map(function, *lists))

    def call(self, verb, config, directory, *settings):
        """What it prints on standard output and standard error."""
        command = [self.program, verb, "--config", str(config), f"run.dir={directory}", "trace.steps=0", *settings]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode not in (0, STOPPED):
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr[-3000:]}")
        return done.stdout, done.stderr

    def supernet(self, name, config, *settings):
        directory = self.folder / name
        if not (directory / "model.safetensors").exists():
            self.call("train", config, directory, *settings)
        return directory

    def search(self, directory, name, *settings):
        """What a search of a supernet prints, and its scores in the order of ids."""
        told = self.call("search", directory / "config.yaml", directory, f"search.dir={directory / name}", *settings)
        lines = (directory / name / "search.jsonl").read_text().splitlines()
        return told, [json.loads(line) for line in lines]

    def trained(self, config, choice, seed, name, *settings):
        """The validation loss of a network that is trained from scratch as a search's configuration has it; its run is not kept."""
        known = self.folder / name / ("-".join(map(str, choice)) + ".json")
        if not known.exists():
            directory = known.with_suffix("")
            steps = int(re.search(r"^  steps: (\d+)$", pathlib.Path(config).read_text(), re.M)[1])
            self.call("train", config, directory, f"seed={seed}", "run.resume=never", f"model.choice={list(choice)}",
                      f"train.evaluate_every={steps}", *settings)
            known.write_text((directory / "metrics.jsonl").read_text().splitlines()[-1])
            shutil.rmtree(directory)
        return json.loads(known.read_text())["validation_loss"]


def kendall(a, b):
    """Tau-b and its p-value, by the normal distribution, of two lists in which hardly a number comes twice."""
    pairs = [(i, k) for i in range(len(a)) for k in range(i)]
    signs = [((a[i] > a[k]) - (a[i] < a[k]), (b[i] > b[k]) - (b[i] < b[k])) for i, k in pairs]
    tau = sum(x * y for x, y in signs) / math.sqrt(sum(x * x for x, _ in signs) * sum(y * y for _, y in signs))
    deviation = math.sqrt(2 * (2 * len(a) + 5) / (9 * len(a) * (len(a) - 1)))
    return tau, math.erfc(abs(tau) / deviation / math.sqrt(2))


def choice_of(score):
    return tuple(score["choice"])


def best_of(scores):
    return choice_of(min(scores, key=lambda score: (score["loss"], score["id"])))


class Verdicts:
    """What must hold, and what is aimed at, for some of the seeds."""

    def __init__(self):
        self.missed = 0

    def say(self, what, found, needed, is_must):
        good = sum(found) >= needed
        self.missed += is_must and not good
        kind, verdict = "must" if is_must else "aim", "good" if good else "MISSED"
        print(f"  {kind}: {what} for {needed} of {len(found)} seeds: {sum(found)}: {verdict}", flush=True)


def most(seeds):
    """Two of three, and so on."""
    return -(-2 * len(seeds) // 3)


def text(runs, seeds, verdicts):
    config = ROOT / "configs/supernet-text.yaml"

    def searched(seed, sampler, window):
        directory = runs.supernet(f"text-{seed}-{sampler}-{window}", config, f"seed={seed}", f"supernet.sampler={sampler}",
                                  f"supernet.window={window}")
        _, all_scores = runs.search(directory, "all", "search.searcher=random", "search.scores=81")
        _, found = runs.search(directory, "search")
        return directory, {choice_of(score): score["loss"] for score in all_scores}, best_of(found), len(found)

    cases = [(seed, *supernet) for seed in seeds for supernet in SUPERNETS]
    results = dict(zip(cases, runs.at_once(searched, *zip(*cases))))
    truths = {}
    for seed in seeds:
        directory, scores, _, _ = results[(seed, *JUDGED)]
        choices = sorted(scores)
        best = directory / "search/best-1.yaml"
        losses = runs.at_once(lambda choice: runs.trained(best, choice, seed, f"text-{seed}-trained"), choices)
        truths[seed] = dict(zip(choices, losses))
        ordered = sorted(losses)
        print(f"seed {seed}: {len(losses)} networks trained from scratch: losses {ordered[0]:.4f} to {ordered[-1]:.4f}, the middle one "
              f"{ordered[len(ordered) // 2]:.4f}", flush=True)
    for seed, other in ((a, b) for a in seeds for b in seeds if a < b):
        tau, _ = kendall([truths[seed][choice] for choice in truths[seed]], [truths[other][choice] for choice in truths[seed]])
        print(f"losses of seed {seed} against those of seed {other}: tau {tau:.3f}")

    print("\nsampler      window  seed    tau        p  place of the best score  found by a search")
    good, among = [], []
    for sampler, window in SUPERNETS:
        for seed in seeds:
            _, scores, found, count = results[(seed, sampler, window)]
            truth = truths[seed]
            order = sorted(truth, key=truth.get)
            tau, p = kendall([scores[choice] for choice in order], [truth[choice] for choice in order])
            place = order.index(found) + 1
            best = order.index(min(scores, key=scores.get)) + 1
            print(f"{sampler:<12} {window:>6} {seed:>5} {tau:>6.3f} {p:>8.1e} {best:>24} {place:>4} of {len(order)}, {count} scores")
            if (sampler, window) == JUDGED:
                good.append(tau >= 0.3 and p < 0.01)
                among.append(place)
    print()
    verdicts.say("tau of permutation is 0.3 or more with p < 0.01", good, len(seeds), True)
    verdicts.say("the search finds one of the best 12", [place <= 12 for place in among], most(seeds), True)
    verdicts.say("the search finds one of the best 4", [place <= 4 for place in among], len(seeds), False)


def dates(runs, seeds, verdicts):
    config, rate = ROOT / "configs/supernet-dates.yaml", "optimizer.rate.peak=2e-3"  # with 4e-3 all good networks end alike

    def searched(seed):
        directory = runs.supernet(f"dates-{seed}", config, f"seed={seed}")
        _, evolved = runs.search(directory, "search")
        (table, _), drawn = runs.search(directory, "random", "search.searcher=random", "search.verify=16", rate)
        against = re.search(r"^scores against .*", table, re.M)[0]
        return directory / "search/best-1.yaml", evolved, drawn, against

    results = runs.at_once(searched, seeds)
    print("\nseed  found by evolution  by random search  ten drawn ones, trained from scratch")
    beaten, beaten_by_random = [], []
    for seed, (best, evolved, drawn, against) in zip(seeds, results):
        choices = [best_of(evolved), best_of(drawn)] + [choice_of(score) for score in drawn[:10]]
        found, by_random, *others = runs.at_once(lambda choice: runs.trained(best, choice, seed, f"dates-{seed}-trained", rate),
                                               choices)
        beaten.append(sum(found < other for other in others))
        beaten_by_random.append(sum(by_random < other for other in others))
        print(f"{seed:>4} {found:>10.4f} beats {beaten[-1]:>2} {by_random:>8.4f} beats {beaten_by_random[-1]:>2}  "
              f"{' '.join(f'{other:.4f}' for other in sorted(others))}")
        print(f"      16 networks, {against}", flush=True)
    print(f"\n{len(results[0][1])} scores for either search")
    verdicts.say("the found network beats 8 of 10 drawn ones", [count >= 8 for count in beaten], most(seeds), True)
    verdicts.say("the found network beats 8 of 10 drawn ones", [count >= 8 for count in beaten], len(seeds), False)


def halving(runs, seeds, verdicts):
    directory = runs.supernet(f"text-{seeds[0]}-permutation-16", ROOT / "configs/supernet-text.yaml", f"seed={seeds[0]}")

    def halved():
        (told, log), _ = runs.search(directory, "halving", "search.searcher=random", "search.scores=81", "search.best=40",
                                     "search.halving=[25, 3]")
        return told[told.index("successive halving"):].strip(), re.search(r"^halving: .*", log, re.M)[0]

    def from_scratch(name, steps):
        run = runs.folder / "halved" / f"{name}-{steps}"
        runs.call("train", directory / "halving/halving" / name / "config.yaml", run, f"run.stop_after={steps}")
        last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
        shutil.rmtree(run)
        return last["validation_loss"]

    told, counts = halved()
    print(f"\nseed {seeds[0]}, {told}\n{counts}", flush=True)
    rounds = [(int(steps), names.split()[::2]) for steps, names in re.findall(r"^ +(\d+) +\d+ ((?: \S+ [\d.]+)+)$", told, re.M)]
    trainings = [(name, steps) for steps, names in rounds for name in names]
    losses = dict(zip(trainings, runs.at_once(from_scratch, *zip(*trainings))))
    same = all(names == sorted(names, key=lambda name: losses[(name, steps)]) for steps, names in rounds)
    print(f"each of {len(trainings)} trainings from scratch")
    verdicts.say("survivors are the same in the same order", [same and len(trainings) > 80], 1, True)
    told_again, counts = halved()
    print(f"once more: {counts}")
    verdicts.say("what is done is not done again", [told_again == told and "halving: 0 trainings" in counts], 1, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--runs")
    options = parser.parse_args()
    seeds, parts = [int(seed) for seed in options.seeds.split(",")], options.parts.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--parts are some of {', '.join(PARTS)}")
    folder = options.runs or tempfile.mkdtemp(prefix="ranking-")
    verdicts = Verdicts()
    try:
        for part in parts:
            start = time.monotonic()
            print(f"\n== {part}")
            {"text": text, "dates": dates, "halving": halving}[part](Runs(options.program, folder), seeds, verdicts)
            print(f"{part}: {time.monotonic() - start:.0f} s", flush=True)
    finally:
        if not options.runs:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if verdicts.missed else 0


if __name__ == "__main__":
    sys.exit(main())
