"""The file of a trace: who waits for whom and meets whom, and what actions took by themselves. For replay_levels.py."""

import json
import struct
import sys
from collections import defaultdict

PASSES, UPDATE, SEND, RECEIVE, COLLECTIVES = (0, 1, 2, 3), 4, 5, 6, (7, 8, 9)
DATA, GRID, UNIT_GRADIENT, COMPUTE = 1, 2, 5, 0


def read(path):
    """The metadata, and the tensors as rows of numbers: (shape, numbers)."""
    with open(path, "rb") as file:
        raw = file.read()
    size = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:8 + size])
    tensors = {}
    for name, tensor in head.items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in tensor["data_offsets"])
            tensors[name] = tensor["shape"], struct.unpack(f"<{(end - begin) // 8}q", raw[begin:end])
    return head["__metadata__"], tensors


def rows(tensor):
    (_, width), numbers = tensor
    return [numbers[at:at + width] for at in range(0, len(numbers), width)]


def lists_of(path):
    """The list of each stage, its actions as fields with names."""
    metadata, tensors = read(path)
    fields = metadata["fields"].split()
    programs = sorted((name for name in tensors if name.startswith("program.")), key=lambda name: int(name.split(".")[1]))
    return [[dict(zip(fields, row)) for row in rows(tensors[name])] for name in programs]


class Trace:
    """Actions of all ranks, numbered rank after rank, whom each waits for and whom it meets; their times by themselves in each step."""

    def __init__(self, path):
        metadata, self.tensors = read(path)
        if metadata["of"] != "steps" or len(set(metadata["hosts"].split())) > 1:
            sys.exit(f"{path}: levels are of steps, and of one host's clock")
        _, self.pipeline, self.data, self.tensor = (int(degree) for degree in metadata["grid"].split())
        self.ranks = self.pipeline * self.data * self.tensor
        self.paper = [self.tensors[f"paper.{stage}"][1] for stage in range(self.pipeline)] if metadata["prices"] == "measured" else []
        self.lists = lists_of(path)
        self.number_actions()
        self.find_waits()
        self.find_meetings()
        self.read_times()
        self.take_apart()

    def stage(self, rank):
        return rank // (self.data * self.tensor)

    def number(self, stage, data, tensor, index):
        return self.first[(stage * self.data + data) * self.tensor + tensor] + index

    def number_actions(self):
        self.first, self.actions, self.rank, self.index = [], [], [], []
        for rank in range(self.ranks):
            self.first.append(len(self.actions))
            for index, action in enumerate(self.lists[self.stage(rank)]):
                self.actions.append(action)
                self.rank.append(rank)
                self.index.append(index)
        self.first.append(len(self.actions))

    def find_waits(self):
        """Each waits for the one before it in its queue; a call over data, two of which may be under way, for the end of the last but one
        and the begin of the last."""
        self.ended, self.begun = [], []
        waits = []
        for stage, actions in enumerate(self.lists):
            newest, of_list = {}, []
            for index, action in enumerate(actions):
                queue = (COMPUTE,) if action["queue"] == COMPUTE else \
                    (action["queue"], action["peer"], action["payload"], action["kind"]) if action["kind"] in (SEND, RECEIVE) else \
                    (action["queue"], action["group"])
                last, before = newest.get(queue, (-1, -1))
                two = action["group"] == DATA
                end = before if two else last
                of_list.append([[end] if end >= 0 else [], last if two else -1])
                newest[queue] = index, last
            for later, earlier in rows(self.tensors[f"after.{stage}"]):
                of_list[later][0].append(earlier)
            waits.append(of_list)
        for rank in range(self.ranks):
            for ended, begun in waits[self.stage(rank)]:
                self.ended.append([self.first[rank] + other for other in ended])
                self.begun.append(self.first[rank] + begun if begun >= 0 else -1)

    def find_meetings(self):
        self.meeting = [()] * len(self.actions)

        def join(members):
            for member in members:
                self.meeting[member] = tuple(members)

        replicas = [(data, tensor) for tensor in range(self.tensor) for data in range(self.data)]
        sent, received, of_grid = defaultdict(list), defaultdict(list), []
        for stage, actions in enumerate(self.lists):
            of_grid.append([])
            for index, action in enumerate(actions):
                if action["kind"] == SEND:
                    sent[stage, action["peer"], action["payload"]].append((stage, index))
                elif action["kind"] == RECEIVE:
                    received[action["peer"], stage, action["payload"]].append((stage, index))
                elif action["kind"] in COLLECTIVES and action["group"] == GRID:
                    of_grid[-1].append((stage, index))
                elif action["kind"] in COLLECTIVES:
                    for tensor in range(self.tensor):
                        join([self.number(stage, data, tensor, index) for data in range(self.data)])
        for channel, froms in sent.items():
            for ends in zip(froms, received[channel]):
                for data, tensor in replicas:
                    join([self.number(stage, data, tensor, index) for stage, index in ends])
        for calls in zip(*of_grid):
            join([self.number(stage, data, tensor, index) for data, tensor in replicas for stage, index in calls])

    def sharers(self, action):
        stage, within = divmod(self.rank[action], self.data * self.tensor)
        return [self.number(stage, within // self.tensor, tensor, self.index[action]) for tensor in range(self.tensor)]

    def read_times(self):
        """start and end: [step][action]; sums: of each step and action the (start, end) of its tensor sums."""
        self.steps = self.tensors["times.0"][0][0]
        self.start = [[] for _ in range(self.steps)]
        self.end = [[] for _ in range(self.steps)]
        self.sums = [defaultdict(list) for _ in range(self.steps)]
        for rank in range(self.ranks):
            (_, count, _), numbers = self.tensors[f"times.{rank}"]
            for step in range(self.steps):
                of_step = numbers[2 * count * step:2 * count * (step + 1)]
                self.start[step] += of_step[::2]
                self.end[step] += of_step[1::2]
            for step, action, _, start, end in rows(self.tensors[f"sums.{rank}"]):
                self.sums[step][self.first[rank] + action].append((start, end))
        self.leave_out_pauses()
        for group in {tuple(self.sharers(action)) for of_step in self.sums for action in of_step}:
            if not self.is_cut(group):
                for of_step in self.sums:
                    for member in group:
                        of_step.pop(member, None)

    def leave_out_pauses(self):
        """Takes out what all ranks spent between two steps, in evaluations and saves, beyond what is usual there."""
        outside = [[row[-1] for row in rows(self.tensors[f"host.{rank}"])] for rank in range(self.ranks)]
        between = [min(of_rank[step] if of_rank else 0 for of_rank in outside) for step in range(self.steps)]
        usual, paused = sorted(between[1:])[(self.steps - 2) // 2] if self.steps > 1 else 0, 0
        for step in range(1, self.steps):
            more = between[step] - usual
            paused += more if more > 1_000_000 and between[step] > 4 * usual else 0
            self.start[step] = [time - paused for time in self.start[step]]
            self.end[step] = [time - paused for time in self.end[step]]
            self.sums[step] = defaultdict(list, {action: [(start - paused, end - paused) for start, end in sums]
                                                 for action, sums in self.sums[step].items()})

    def is_cut(self, group):
        """Whether a pass can be taken apart at its sums: as many in all steps and on all that share it, one after the other within it."""
        counts = {len(of_step.get(member, ())) for of_step in self.sums for member in group}
        return len(counts) == 1 and all(
            all(a <= b for a, b in zip([self.start[step][member]] + [end for _, end in sums],
                                       [start for start, _ in sums] + [self.end[step][member]]))
            for step, of_step in enumerate(self.sums) for member in group for sums in [of_step[member]])

    def take_apart(self):
        """Times without waits: lag and what an action takes, [step][action]; eager: it waited for nobody; pieces: of a cut pass what it
        computes before each sum, and what the sum takes."""
        count, free = len(self.actions), [min(min(of_step) for of_step in self.start)] * self.ranks
        self.lag, self.lasts, self.eager = ([[0] * count for _ in range(self.steps)] for _ in range(3))
        self.pieces = [{} for _ in range(self.steps)]
        for step in range(self.steps):
            start, end = self.start[step], self.end[step]
            for action in range(count):
                causes = [free[self.rank[action]]] + [end[other] for other in self.ended[action]]
                if self.begun[action] >= 0:
                    causes.append(start[self.begun[action]])
                self.lag[step][action] = max(0, start[action] - max(causes))
                self.lasts[step][action] = end[action] - start[action]
                if action in self.sums[step]:
                    self.cut(step, action)
                elif self.meeting[action]:
                    what, posted = self.actions[action], max(start[member] for member in self.meeting[action])
                    may_be_eager = what["kind"] == SEND or what["payload"] == UNIT_GRADIENT or what["group"] == DATA
                    self.eager[step][action] = may_be_eager and end[action] < posted
                    if not self.eager[step][action]:
                        self.lasts[step][action] = max(0, end[action] - posted)
            for rank in range(self.ranks):
                free[rank] = max([free[rank]] + end[self.first[rank]:self.first[rank + 1]])

    def cut(self, step, action):
        free, pieces = self.start[step][action], []
        for number, (start, end) in enumerate(self.sums[step][action]):
            met = max(self.sums[step][sharer][number][0] for sharer in self.sharers(action))
            pieces.append((start - free, max(0, end - met)))
            free = end
        self.pieces[step][action] = pieces
        self.lasts[step][action] = self.end[step][action] - free
