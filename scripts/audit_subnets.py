#!/usr/bin/env python3
"""Proves from the trace of a supernet's run that its subnets met in causal order.

audit_subnets.py TRACE --choices FILE [--window N] [--overtaken N] [--moved N] [--cells]
  TRACE    trace.json of a run whose trace.steps holds the subnets to be looked at
  FILE     what each subnet was: a line for each, the number of each block's candidate between commas; or metrics.jsonl, of
           whose lines those count that have "subnet" and "choice"
It takes nothing from the program's plan: who uses which unit follows from the choices, when and with which version from the
trace. Proved, over all lanes and stages (of each place on the data and tensor axes, whose ranks all do the same):
  - of each unit that it names: all forwards and backwards of a subnet, then its update, then those of the next subnet that
    uses it, in increasing ids; on one rank at a time nothing overlaps
  - a subnet uses a unit on one rank; where the next one uses it on another, messages have brought it there, each of which was
    sent after the update and had arrived before the forward
  - each of these found the unit in the version that counts the older subnets which use it
  - every subnet's passes name the units of its choice: what one subnet names, each other one that chose it does, too
  - with --window: what all subnets share was read in the version of two windows before, and updated a window at a time
  - with --cells, for a space of cells, whose candidates may share a unit, that of the first of them: each number of a choice
    names the same unit, or none, in whatever subnet it is; the rest is proved of these units
Says besides how often a forward of a later subnet began before an earlier one's on the same rank (at least --overtaken times),
and how often a unit came from another rank (at least --moved times).
Exits 1, with a sentence for each finding, if anything is otherwise.
"""
import argparse
import collections
import json
import re
import sys

MOST_SENTENCES = 20
WORK = ("forward", "backward", "update")
PLACE = re.compile(r"rank \d+: (?:lane (\d+), )?stage (\d+), data (\d+), tensor (\d+)")


def read_choices(path):
    """The choice of each subnet by its id."""
    choices = {}
    with open(path) as file:
        for line in file:
            if line.lstrip().startswith("{"):
                entry = json.loads(line)
                if "choice" in entry and "subnet" in entry:
                    choice = entry["choice"]
                    choices[entry["subnet"]] = [int(number) for number in choice.split(",")] if isinstance(choice, str) else choice
            elif line.strip() and not line.startswith("#"):
                choices[len(choices)] = [int(number) for number in line.split(",")]
    return choices


def users_of_units(choices, units):
    """The ids, in order, of the subnets that use each unit. `units`: of candidates that do not name their own."""
    users = collections.defaultdict(list)
    for subnet in sorted(choices):
        for block, number in enumerate(choices[subnet]):
            users[units.get((block, number), f"blocks.{block}.{number}")].append(subnet)
    return users


def units_of_candidates(choices, events):
    """The unit that each number of a choice names where it is chosen, and a sentence for each that names several or another one's."""
    units, findings = {}, []
    for event in events:
        if event.get("ph") != "X" or event.get("cat") != "forward" or event["args"].get("subnet") not in choices:
            continue
        choice = choices[event["args"]["subnet"]]
        for unit in event["args"].get("units", {}):
            block, owner = (int(number) for number in unit.split(".")[1:])
            if owner > choice[block] or units.setdefault((block, choice[block]), unit) != unit:
                findings.append(f"candidate {choice[block]} of place {block} names {unit}"
                                f" and {units.get((block, choice[block]), 'is none of those that may share it')}")
    return units, findings


def places_of_ranks(events):
    """Of each rank its replica, data and tensor, and its place in the program, lane after lane and stage after stage."""
    found = {}
    for event in events:
        if event.get("name") == "process_name":
            name = PLACE.search(event["args"]["name"])
            found[event["pid"]] = [int(number or 0) for number in name.groups()]
    stages = 1 + max((stage for _, stage, _, _ in found.values()), default=0)
    return {rank: ((data, tensor), lane * stages + stage) for rank, (lane, stage, data, tensor) in found.items()}


class Audit:
    def __init__(self, events, choices, window, cells):
        units, findings = units_of_candidates(choices, events) if cells else ({}, [])
        self.choices, self.window, self.users = choices, window, users_of_units(choices, units)
        self.findings, self.overtaken, self.uses, self.journeys, self.units = findings, 0, 0, 0, set()
        self.ranks = collections.defaultdict(list)
        self.places, self.moves = places_of_ranks(events), collections.defaultdict(dict)
        for event in events:
            if event.get("ph") == "X" and event.get("cat") in WORK:
                self.ranks[event["pid"]].append(event)
            elif event.get("cat") in ("send", "receive") and "moved" in event["args"]:
                self.see_move(event)
        for actions in self.ranks.values():
            actions.sort(key=lambda event: (event["ts"], event["ts"] + event["dur"]))
        self.subnets = sorted({event["args"]["subnet"] for actions in self.ranks.values() for event in actions
                               if "subnet" in event["args"]})

    def finds(self, holds, sentence):
        if not holds:
            self.findings.append(sentence)

    def run(self):
        self.finds(self.subnets, "the trace names no subnet: is it a supernet's?")
        unknown = [subnet for subnet in self.subnets if subnet not in self.choices]
        self.finds(not unknown, f"the choices do not have subnet {unknown[0] if unknown else ''}")
        if self.findings:
            return
        first, last = self.subnets[0], self.subnets[-1]
        self.finds(len(self.subnets) == last - first + 1, f"of subnets {first} to {last} some are missing")
        by_unit = collections.defaultdict(list)
        for rank, actions in sorted(self.ranks.items()):
            self.look_at_rank(rank, actions, by_unit)
        for (replica, unit), seen in sorted(by_unit.items()):
            self.units.add(unit)
            self.look_at_unit(replica, unit, sorted(seen, key=lambda use: (use[0]["ts"], use[0]["ts"] + use[0]["dur"])))
        self.finds(self.units, "no action names a unit")

    def see_move(self, event):
        """When a message of units was sent and had arrived, over all its parts. Both ends name the same units."""
        args, (replica, here) = event["args"], self.places[event["pid"]]
        leaves = event["cat"] == "send"
        key = (here, args["peer"]) if leaves else (args["peer"], here)
        units = tuple(args["moved"])
        times = self.moves[replica].setdefault(key + (args["subnet"], args.get("home", False), units), {"units": set(units)})
        if leaves:
            times["sent"] = min(times.get("sent", event["ts"]), event["ts"])
        else:
            times["arrived"] = max(times.get("arrived", event["ts"]), event["ts"] + event["dur"])

    def look_at_journey(self, replica, unit, update, forward):
        """A unit's messages between an update and the next forward, on another rank, have brought it from there to here."""
        end = update["ts"] + update["dur"]
        reached = {self.places[update["pid"]][1]}
        for (source, target, *_), move in sorted(self.moves[replica].items(), key=lambda item: item[1].get("arrived", 0)):
            if unit not in move["units"] or source not in reached or "sent" not in move or "arrived" not in move:
                continue
            if move["sent"] >= end - 1e-3 and move["arrived"] <= forward["ts"] + 1e-3:
                reached.add(target)
        self.journeys += 1
        self.finds(self.places[forward["pid"]][1] in reached,
                   f"unit {unit}: no message brought it from rank {update['pid']}, after {self.name(update)}, to rank"
                   f" {forward['pid']}, before {self.name(forward)}")

    def look_at_rank(self, rank, actions, by_unit):
        shared = collections.defaultdict(list)
        end, before = float("-inf"), None
        for event in actions:
            if event["ts"] < end - 1e-3:
                self.finds(False, f"rank {rank}: {self.name(event)} runs while {self.name(before)} does")
            end, before = event["ts"] + event["dur"], event
            args = event["args"]
            for unit, version in args.get("units", {}).items():
                if "subnet" in args:
                    by_unit[self.places[rank][0], unit].append((event, version))
                else:
                    shared[unit].append((event, version))
            for unit, version in args.get("shared", {}).items():
                shared[unit].append((event, version))
        for unit, seen in sorted(shared.items()):
            self.look_at_shared(rank, unit, seen)
        newest = -1
        for event in actions:
            if event["cat"] == "forward" and event["args"].get("micro_batch", 0) == 0:
                self.overtaken += event["args"]["subnet"] < newest
                newest = max(newest, event["args"]["subnet"])

    @staticmethod
    def name(event):
        args = event["args"]
        of = f"subnet {args['subnet']}" if "subnet" in args else f"window {args['window']}"
        return f"{event['name']} of {of}"

    def look_at_unit(self, replica, unit, seen):
        users = self.users.get(unit, [])
        expected = [user for user in users if self.subnets[0] <= user <= self.subnets[-1]]
        older = len([user for user in users if user < self.subnets[0]])
        here = f"data {replica[0]}, tensor {replica[1]}, unit {unit}"
        order = list(dict.fromkeys(event["args"]["subnet"] for event, _ in seen))
        self.finds(order == expected, f"{here}: subnets come in the order {order[:12]}, and not {expected[:12]}")
        position = {user: place for place, user in enumerate(users)}
        turns, newest, before = [], None, None
        for event, version in seen:
            subnet = event["args"]["subnet"]
            self.uses += 1
            self.finds(version == position.get(subnet, -1),
                       f"{here}: {self.name(event)} found version {version}, after {position.get(subnet, 'no')} older users")
            is_elsewhere = before is not None and event["pid"] != before["pid"]
            if subnet != newest:
                turns.append((subnet, []))
                newest = subnet
                if is_elsewhere:
                    self.look_at_journey(replica, unit, before, event)
            else:
                self.finds(not is_elsewhere, f"{here}: subnet {subnet} uses it on two ranks")
            if before is not None:
                self.finds(event["ts"] >= before["ts"] + before["dur"] - 1e-3,
                           f"{here}: {self.name(event)} runs while {self.name(before)} does")
            before = event
            turns[-1][1].append((event["cat"], event["args"].get("micro_batch", 0)))
        micro_batches = max((len([1 for what, _ in turn if what == "forward"]) for _, turn in turns), default=0)
        self.finds(len(turns) == len(order), f"{here}: a subnet comes back after another one")
        self.finds(older + len(turns) <= len(users), f"{here}: used {len(turns)} times, chosen {len(users)} times")
        for subnet, turn in turns:
            for what in ("forward", "backward"):
                numbers = [number for kind, number in turn if kind == what]
                self.finds(numbers == list(range(micro_batches)), f"{here}: {what}s of subnet {subnet} are {numbers}")
            for number in range(micro_batches):
                if ("forward", number) in turn and ("backward", number) in turn:
                    self.finds(turn.index(("forward", number)) < turn.index(("backward", number)),
                               f"{here}: subnet {subnet} goes backward before it went forward")
            kinds = [kind for kind, _ in turn]
            self.finds(kinds.count("update") == 1 and kinds[-1] == "update",
                       f"{here}: subnet {subnet} does not end with its one update, but {' '.join(kinds)}")

    def look_at_shared(self, rank, unit, seen):
        if self.window == 0:
            return
        here = f"rank {rank}, unit {unit}, which all share"
        windows = [event["args"]["window"] for event, _ in seen if "window" in event["args"]]
        expected = list(range(self.subnets[0] // self.window, self.subnets[-1] // self.window + 1))
        self.finds(windows == expected, f"{here}: windows are applied in the order {windows[:12]}, and not {expected[:12]}")
        for event, version in seen:
            args = event["args"]
            wanted = args["window"] if "window" in args else max(0, args["subnet"] // self.window - 1)
            self.finds(version == wanted, f"{here}: {self.name(event)} found version {version}, and not {wanted}")

    def whole(self):
        """A candidate that some subnet names is named by all that chose it; the rest have no parameters."""
        unnamed = [unit for unit in self.users if unit not in self.units]
        return f"{len(self.units)} units named, {len(unnamed)} candidates without parameters" + \
            (f" ({', '.join(sorted(unnamed)[:4])}{', ...' if len(unnamed) > 4 else ''})" if unnamed else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("trace")
    parser.add_argument("--choices", required=True)
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--overtaken", type=int, default=0)
    parser.add_argument("--moved", type=int, default=0)
    parser.add_argument("--cells", action="store_true")
    options = parser.parse_args()
    with open(options.trace) as file:
        events = json.load(file)["traceEvents"]
    audit = Audit(events, read_choices(options.choices), options.window, options.cells)
    audit.run()
    audit.finds(audit.overtaken >= options.overtaken,
                f"later subnets overtook earlier ones {audit.overtaken} times, {options.overtaken} were expected")
    audit.finds(audit.journeys >= options.moved, f"units came from another rank {audit.journeys} times, {options.moved} were expected")
    for sentence in audit.findings[:MOST_SENTENCES]:
        print(sentence)
    if audit.findings:
        print(f"{len(audit.findings)} findings: this is no causal order")
        return 1
    print(f"{len(audit.subnets)} subnets on {len(audit.ranks)} ranks in causal order: {audit.uses} uses of units, {audit.whole()}; "
          f"{audit.overtaken} forwards began after a later subnet's; {audit.journeys} times a unit came from another rank")
    return 0


if __name__ == "__main__":
    sys.exit(main())
