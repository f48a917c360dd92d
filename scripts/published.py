#!/usr/bin/env python3
"""Prints every published step of data/published beside what plans say of it, with the errors of each set.

    scripts/published.py [--program build/mindpipe-train] [--sets KNML] [--vtrain]"""

import argparse
import os

import published_steps as steps_of

DEVICES = {"K": "a100", "N": "a100", "M": "a100", "L": "h100"}
WHAT = {"K": "fitted to these", "N": "predicted", "M": "other software: only ratios are predicted", "L": "predicted"}


def device(name):
    return os.path.join(steps_of.ROOT, "configs", "devices", name + ".yaml")


def tell_set(program, name):
    steps = [step for step in steps_of.published() if step.group == name]
    seconds = steps_of.planned_seconds(program, steps, device(DEVICES[name]))
    print(f"set {name}, configs/devices/{DEVICES[name]}.yaml: {WHAT[name]}")
    for step, planned, error in zip(steps, seconds, steps_of.errors(steps, seconds)):
        print(f"  {step.name:14} {step.ranks:6} ranks  {step.seconds:8.3f} s published {planned:8.3f} s planned "
              f"{100 * error:+6.1f} %", flush=True)
    if name == "M":
        for step, planned in zip(steps[1:], seconds[1:]):
            published = step.seconds / steps[0].seconds
            print(f"  {step.name} over {steps[0].name}: {published:.3f} published, {planned / seconds[0]:.3f} planned, "
                  f"{100 * (planned / seconds[0] / published - 1):+.1f} %")
    else:
        print("  mean error {:.1f} %, worst {:.1f} %".format(
            *(100 * error for error in steps_of.mean_and_worst(steps, seconds))))


def tell_vtrain(program):
    steps = list(steps_of.vtrain_single())
    seconds = steps_of.planned_seconds(program, steps, device("a100-node"))
    mean, worst = steps_of.mean_and_worst(steps, seconds)
    groups = list(steps_of.groups(steps, seconds))

    def over_groups(figure):
        return sum(figure(one, planned) for one, planned in groups) / len(groups)

    correlation = over_groups(lambda one, planned: steps_of.rank_correlation([step.seconds for step in one], planned))
    first, three = (over_groups(lambda one, planned, tries=tries: steps_of.regret(one, planned, tries))
                    for tries in (1, 3))
    by_rule = [steps_of.regret(one, order, 1) for one, order in steps_of.groups(steps, steps_of.as_much_data_as_fits(steps))]
    print(f"{len(steps)} steps on one node of eight A100, configs/devices/a100-node.yaml (fitted to 64 of them): mean "
          f"error {100 * mean:.1f} %, worst {100 * worst:.1f} %; in {len(groups)} groups of layouts rank correlation "
          f"{correlation:.3f}, the first by the plan {100 * first:.1f} % off the best, the best of the first three "
          f"{100 * three:.1f} %; as much data as fits with the largest micro-batch {100 * sum(by_rule) / len(by_rule):.1f} %, "
          f"at worst {100 * max(by_rule):.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=os.path.join(steps_of.ROOT, "build", "mindpipe-train"))
    parser.add_argument("--sets", default="KNML")
    parser.add_argument("--vtrain", action="store_true", help="also the 1,440 steps of vtrain_single.csv")
    arguments = parser.parse_args()
    for name in arguments.sets:
        tell_set(arguments.program, name)
    if arguments.vtrain:
        tell_vtrain(arguments.program)


if __name__ == "__main__":
    main()
