#!/usr/bin/env python3
"""What a step takes by a trace alone, level by level: a second reckoning of what replay says.

    replay_levels.py RUN/replay/trace.safetensors

Prints nanoseconds of a step: T0 as it ran, T1 with the host alike everywhere, T2 without noise, T3 with equal micro-batches, T4 with ranks
as fast as their peers: the levels that replay.json has in this order. It reads nothing but the file (docs/replay.md), and shares no code
with the program. A trace of subnets has no levels, and clocks of several hosts would have to be brought together: both are refused."""

import math
import sys
from collections import defaultdict

sys.dont_write_bytecode = True
from traced_steps import PASSES, UPDATE, Trace


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return (values[middle] if len(values) % 2 else (values[middle] + values[middle - 1]) / 2) if values else 0


def rounded(value):
    return math.floor(value + 0.5)


class Times:
    """What actions take, to be changed and run again."""

    def __init__(self, trace):
        self.trace = trace
        self.lag = [list(of_step) for of_step in trace.lag]
        self.lasts = [list(of_step) for of_step in trace.lasts]
        self.pieces = [dict(of_step) for of_step in trace.pieces]

    def computed(self, step, action):
        return self.lasts[step][action] + sum(before for before, _ in self.pieces[step].get(action, ()))

    def compute(self, step, action, wanted):
        now = self.computed(step, action)
        if now <= 0:
            self.lasts[step][action] = rounded(wanted)
            return
        factor = wanted / now
        self.lasts[step][action] = rounded(self.lasts[step][action] * factor)
        if action in self.pieces[step]:
            self.pieces[step][action] = [(rounded(before * factor), takes) for before, takes in self.pieces[step][action]]

    def period(self):
        """Runs all steps, each rank going on where its step before ended: nanoseconds a step, from the end of the first on."""
        free, ends = [0] * self.trace.ranks, []
        for step in range(self.trace.steps):
            free = StepRun(self, step, free).run()
            ends.append(max(free))
        return ends[0] if len(ends) == 1 else (ends[-1] - ends[0]) // (len(ends) - 1)


class StepRun:
    """One step of all ranks: an action begins its lag behind all that it waits for; a communication ends on a member what it takes there
    behind the last of its members' begins."""

    def __init__(self, times, step, free):
        self.trace, self.lag, self.lasts, self.pieces = times.trace, times.lag[step], times.lasts[step], times.pieces[step]
        self.eager, self.free = self.trace.eager[step], list(free)
        count = len(self.trace.actions)
        self.waits = [len(self.trace.ended[action]) + (self.trace.begun[action] >= 0) for action in range(count)]
        self.followers, self.begins = defaultdict(list), {}
        for action in range(count):
            for other in self.trace.ended[action]:
                self.followers[other].append(action)
            if self.trace.begun[action] >= 0:
                self.begins[self.trace.begun[action]] = action
        self.ready = [free[self.trace.rank[action]] for action in range(count)]
        self.left = [action for action in range(count) if self.waits[action] == 0]
        self.posted, self.come, self.at_sum, self.done = {}, {}, defaultdict(int), 0

    def run(self):
        """When each rank is done."""
        while self.left:
            action = self.left.pop()
            begin = self.ready[action] + self.lag[action]
            if action in self.begins:
                self.release(self.begins[action], begin)
            if self.trace.meeting[action]:
                self.post(action, begin)
            else:
                self.compute(action, begin)
        if self.done != len(self.trace.actions):
            sys.exit("its steps wait for something that never comes")
        return self.free

    def release(self, action, when):
        self.ready[action] = max(self.ready[action], when)
        self.waits[action] -= 1
        if self.waits[action] == 0:
            self.left.append(action)

    def end(self, action, when):
        self.done += 1
        rank = self.trace.rank[action]
        self.free[rank] = max(self.free[rank], when)
        for follower in self.followers[action]:
            self.release(follower, when)

    def post(self, action, begin):
        self.posted[action] = begin
        members = self.trace.meeting[action]
        if self.eager[action]:
            self.end(action, begin + self.lasts[action])
        if all(member in self.posted for member in members):
            met = max(self.posted[member] for member in members)
            for member in members:
                if not self.eager[member]:
                    self.end(member, met + self.lasts[member])

    def compute(self, action, when):
        pieces = self.pieces.get(action, ())
        if self.at_sum[action] == len(pieces):
            self.end(action, when + self.lasts[action])
            return
        self.come[action] = when + pieces[self.at_sum[action]][0]
        sharers = self.trace.sharers(action)
        if all(sharer in self.come for sharer in sharers):
            met = max(self.come.pop(sharer) for sharer in sharers)
            for sharer in sharers:
                takes = self.pieces[sharer][self.at_sum[sharer]][1]
                self.at_sum[sharer] += 1
                self.compute(sharer, met + takes)


class Model:
    """A pass or update takes G x W x M: of its work, of its rank, and of its micro-batch in each step and replica."""

    def __init__(self, trace):
        self.trace, own = trace, Times(trace)
        self.computed = [[max(1, own.computed(step, action)) for action in range(len(trace.actions))] for step in range(trace.steps)]
        self.work, members = [], defaultdict(lambda: defaultdict(list))
        for action, what in enumerate(trace.actions):
            work = (trace.stage(trace.rank[action]),) + tuple(what[key] for key in ("kind", "chunk", "first", "last", "unit"))
            self.work.append(work if what["kind"] <= UPDATE else None)
            if what["kind"] <= UPDATE:
                members[work][trace.rank[action]].append(action)
        self.G, self.W = {}, {}
        for work, of_ranks in members.items():
            middle = {rank: [median(self.computed[step][action] for action in actions) for step in range(trace.steps)]
                      for rank, actions in of_ranks.items()}
            self.G[work] = median(time for of_steps in middle.values() for time in of_steps)
            peers = [median(of_steps[step] for of_steps in middle.values()) for step in range(trace.steps)]
            for rank, of_steps in middle.items():
                self.W[rank, work] = median(time / peer for time, peer in zip(of_steps, peers))
        if trace.data * trace.tensor == 1 and len(trace.paper) >= 3:
            self.compare_with_paper()
        self.find_micro_batches()

    def compare_with_paper(self):
        """A lone rank of a stage is as slow as its passes are beside their prices, over the median of that over stages."""
        trace, ratios = self.trace, []
        for rank in range(trace.ranks):
            passes = [action for action in range(trace.first[rank], trace.first[rank + 1]) if trace.actions[action]["kind"] in PASSES]
            priced = sum(trace.paper[rank][trace.index[action]] for action in passes)
            if priced <= 0:
                return
            ratios.append(sum(self.G[self.work[action]] for action in passes) / priced)
        for work in self.G:
            slower = ratios[work[0]] / median(ratios)
            self.W[work[0], work] = slower
            self.G[work] /= slower

    def find_micro_batches(self):
        logs = defaultdict(list)
        for step in range(self.trace.steps):
            for action, what in enumerate(self.trace.actions):
                if self.work[action] and what["micro_batch"] >= 0:
                    logs[self.place(step, action)].append(math.log(self.computed[step][action] / self.of_rank(action)))
        self.M = {place: math.exp(sum(of_place) / len(of_place)) for place, of_place in logs.items()}
        self.mean_M = sum(self.M.values()) / len(self.M) if self.M else 1

    def place(self, step, action):
        data = self.trace.rank[action] // self.trace.tensor % self.trace.data
        return step, data, self.trace.actions[action]["micro_batch"]

    def of_rank(self, action):
        return self.W[self.trace.rank[action], self.work[action]] * self.G[self.work[action]]


def usual_lags(trace):
    """The median over all of a kind, and over those that begin a step, whose first is unknown."""
    lags = defaultdict(list)

    def kind(action):
        what = trace.actions[action]
        return (what["kind"], what["payload"]) if trace.ended[action] or trace.begun[action] >= 0 else "begin"

    for step in range(trace.steps):
        for action in range(len(trace.actions)):
            if kind(action) != "begin" or step > 0 or trace.steps == 1:
                lags[kind(action)].append(trace.lag[step][action])
    middle = {key: rounded(median(values)) for key, values in lags.items()}
    return [middle[kind(action)] for action in range(len(trace.actions))]


def levels(path):
    """T0 to T4, in nanoseconds."""
    trace = Trace(path)
    model, times = Model(trace), Times(trace)
    found = [times.period()]
    lags = usual_lags(trace)
    times.lag = [list(lags) for _ in range(trace.steps)]
    found.append(times.period())

    def mean_M(action):
        return model.mean_M if trace.actions[action]["micro_batch"] >= 0 else 1

    def own_M(step, action):
        return model.M[model.place(step, action)] if trace.actions[action]["micro_batch"] >= 0 else 1

    for wanted in (lambda step, action: model.of_rank(action) * own_M(step, action),
                   lambda _, action: model.of_rank(action) * mean_M(action),
                   lambda _, action: model.G[model.work[action]] * mean_M(action)):
        for step in range(trace.steps):
            for action, work in enumerate(model.work):
                if work:
                    times.compute(step, action, wanted(step, action))
        found.append(times.period())
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for number, period in enumerate(levels(sys.argv[1])):
        print(f"T{number} {period}")


if __name__ == "__main__":
    main()
