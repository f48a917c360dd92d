"""What the figures of replay.py have to be. No program is run here."""
import os
import statistics
import sys
from collections import defaultdict

import verdicts
from verdicts import Must

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from published_steps import rank_correlation

MUSTS = (
    Must("whole", "runs whose replay gives every begin back", 1, False, "%"),
    Must("identity", "its period beside the measured one, worst of all runs", 0.005, True, "%"),
    Must("held out", "medians of odd steps against even ones, mean", 0.02, True, "%"),
    Must("held out worst", "medians of odd steps against even ones, worst", 0.04, True, "%"),
    Must("covering", "layouts of all schedules on 2 to 16 ranks, 6 of them real: replay is the run", 1, False, "%"),
    Must("culprit", "one fault: the first cause is right", 0.95, False, "%"),
    Must("cost", "one fault: its cost within 15 % or 1 ms, too", 0.95, False, "%"),
    Must("pairs", "two faults: both among the first three causes", 0.9, False, "%"),
    Must("clean", "clean runs: nobody is accused", 1, False, "%"),
    Must("same", "what-ifs on the same grid, mean error", 0.03, True, "%"),
    Must("same worst", "what-ifs on the same grid, worst error", 0.06, True, "%"),
    Must("other", "what-ifs on other grids, mean error", 0.05, True, "%"),
    Must("other real", "what-ifs on other grids, real, mean error", 0.1, True, "%"),
    Must("order", "what-ifs on other grids, rank correlation", 0.9, False, "%"),
    Must("inside", "what-ifs whose interval holds the truth", 0.8, False, "%"),
    Must("lanes", "what-ifs of supernets, mean error", 0.05, True, "%"),
    Must("gain", "bad starts: share of the possible gain, worst", 0.9, False, "%"),
    Must("promise", "bad starts: predicted against measured, worst", 0.05, True, "%"),
    Must("faster", "bad starts: what was chosen is not slower than the start, in pairs", 1, False, "%"),
    Must("losses", "bad starts: same losses where no bit may move", 1, False, "%"),
    Must("search", "bad starts: search and measuring, longest", 60, True, "s"),
    Must("busy", "a loop beside one of two real ranks: named, and why", 1, False, "%"),
)
FEWEST = {"covering": 22, "same": 20, "same worst": 20, "other": 10, "order": 10}  # below these a figure says too little
WORST = {"identity", "held out worst", "same worst", "promise", "search"}


class Found:
    """What runs have shown: numbers by the names of musts; of an error its size counts, of a claim whether it held."""

    def __init__(self):
        self.numbers = defaultdict(list)
        self.predicted, self.true = [], []

    def add(self, *names, value):
        for name in names:
            self.numbers[name].append(abs(float(value)))

    def add_order(self, predicted, true):
        self.predicted.append(predicted)
        self.true.append(true)
        self.add("order", value=1)

    def figure(self, name):
        values = self.numbers[name]
        if len(values) < FEWEST.get(name, 1):
            return f"not judged: {len(values)} of the {FEWEST[name]} that it takes" if values else None
        if name == "order":
            return rank_correlation(self.predicted, self.true)
        return max(values) if name in WORST else min(values) if name == "gain" else statistics.mean(values)

    def verdicts(self):
        figures = {must.name: self.figure(must.name) for must in MUSTS}
        return verdicts.judge(figures, verdicts.Machine("", False), musts=MUSTS)
