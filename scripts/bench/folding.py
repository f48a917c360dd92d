"""What it gives to fold sums over data under passes: emulated steps of 4 stages x 2 replicas, breadth-first, beside the same with sums
behind all passes, beside 1f1b's with sums behind all passes, and beside the same in one piece, first come."""
import os
import re
import subprocess

from running import ROOT, at_once, fail

PROGRAM = "test_runtime_contention_mpi"
STEP = re.compile(r"^(1f1b|breadth-first) of \d+ chunks .*, sums ([\d.]+) f, .*?(, sums behind all passes|, in one piece, first come)?: "
                  r"([\d.]+) ms, simulated", re.MULTILINE)
FOLDED, BEHIND, ONE_PIECE = "", ", sums behind all passes", ", in one piece, first come"


def ratios_of(text):
    """By the forwards that a stage's sums take: how many times as long as a folded step the others are."""
    steps = {(kind, sums, how): float(time) for kind, sums, how, time in STEP.findall(text)}
    others = (("1f1b", "1f1b", BEHIND), ("unfolded", "breadth-first", BEHIND), ("one piece", "breadth-first", ONE_PIECE))
    return {float(sums): {name: steps[other, sums, way] / steps["breadth-first", sums, FOLDED] for name, other, way in others}
            for kind, sums, how in steps if (kind, how) == ("1f1b", BEHIND)}


def folding(options):
    """The ratios of a small, a middle and a large share of sums: lists, in this order."""
    tests = os.path.join(os.path.dirname(options.binary), "tests")
    if not os.path.exists(os.path.join(tests, PROGRAM)):
        fail("%s is not there; `make bench` builds it" % os.path.join(tests, PROGRAM))
    done = subprocess.run(at_once() + [os.path.join(ROOT, "tests", "run_mpi.sh"), "8", os.path.join(tests, PROGRAM), "--gtest_brief=1",
                                       "--gtest_filter=Contention.FoldingGives*"],
                          env=dict(os.environ, MINDPIPE_ALL_LAYOUTS="1"), capture_output=True, text=True)
    found = ratios_of(done.stdout)
    if len(found) != 3:
        fail("%s ended with %d\n%s" % (PROGRAM, done.returncode, done.stdout + done.stderr))
    print("\nsums folded under passes, 4 stages x 2 replicas, emulated")
    for sums, ratios in sorted(found.items()):
        print("sums of %4.1f forwards: 1f1b without takes %.2f x, itself without %.2f x, in one piece, first come %.2f x" %
              (sums, ratios["1f1b"], ratios["unfolded"], ratios["one piece"]))
    return {name: [found[sums][name] for sums in sorted(found)] for name in ("1f1b", "unfolded", "one piece")}
