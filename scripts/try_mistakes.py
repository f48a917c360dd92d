#!/usr/bin/env python3
"""try_mistakes.py [--check] [--build BUILD] [--every N] [--first I] [WORD ...]: makes the mistakes of tests/mistakes.txt one at a time,
each in this tree, builds the tests named for it, and says which tier found it. The file is put back as it was. The whole tree is built
first. At the end it says how many of them quick tests found, and how many all tests.

WORD: only mistakes whose file or tests have it; --every N, --first I: every N-th from the I-th on; --check: only whether each still has
its place, whether the tier of each test is the one that the test's file says, and whether quick tests are named for 90 % of them. Exit
code 1: a mistake was not found or has no place, a tier is another one, or quick tests found less than 90 % of the whole table. Each
takes one to three minutes on two cores, all of them two to three hours."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests/mistakes.txt"
SHARE_OF_QUICK = 90  # percents of the mistakes that quick tests find


class Mistake:
    def __init__(self, head):
        self.file, tests = (part.strip() for part in head.split(":", 1))
        quick, _, thorough = tests.partition("thorough:")
        self.tests = {"quick": quick.split(), "thorough": thorough.split()}
        self.right, self.wrong = [], []

    def lines(self, kept):
        return "\n".join(kept)

    def place_complaint(self):
        path = ROOT / self.file
        count = path.read_text().count(self.lines(self.right)) if path.exists() else 0
        return "" if count == 1 else f"{self.file}: '{self.right[0]}' stands there {count} times"

    def make(self):
        path = ROOT / self.file
        text = path.read_text()
        path.write_text(text.replace(self.lines(self.right), self.lines(self.wrong)))
        return path, text


def mistakes():
    found = []
    for line in TABLE.read_text().splitlines():
        if line.startswith("- "):
            found[-1].right.append(line[2:])
        elif line.startswith("+ "):
            found[-1].wrong.append(line[2:])
        elif line and not line.startswith("#"):
            found.append(Mistake(line))
    return found


def tiers_of(name, head):
    """(test, tier) of each test of a file: its name, and its first three lines, which say the tier as tests/CMakeLists.txt reads them."""
    if not name.endswith("_mpi"):
        return [(name, "thorough" if re.search(r"^(//|#) thorough$", "\n".join(head), re.M) else "quick")]
    quick, _, thorough = head[0].partition("thorough ranks:")
    counts, more = re.findall(r"\d+", quick), re.findall(r"\d+", thorough)
    return [(f"{name}_{count}", "quick") for count in counts] + \
        [(f"{name}_{count}_rest" if count in counts else f"{name}_{count}", "thorough") for count in more]


def tiers_of_tests():
    """The tier of each test that a file of its own name has."""
    tiers = {}
    for path in sorted((ROOT / "tests").rglob("*_test.*")):
        name = re.sub(r"_test\.(cpp|py)$", "", "_".join(path.relative_to(ROOT / "tests").parts))
        with open(path, encoding="utf-8") as file:
            tiers.update(tiers_of(name, [line.rstrip("\n") for _, line in zip(range(3), file)]))
    return tiers


def tier_complaints(mistake, tiers):
    for tier, tests in mistake.tests.items():
        for test in tests:
            if test not in tiers:
                yield f"{mistake.file}: no file of tests has the test {test}"
            elif tiers[test] != tier:
                yield f"{mistake.file}: {test} is named as a {tier} test, and its file says {tiers[test]}"


def complaints_of(chosen):
    """What the table says of these mistakes that is not so, and whether too few of them have quick tests."""
    tiers = tiers_of_tests()
    complaints = [complaint for one in chosen if (complaint := one.place_complaint())]
    complaints += [complaint for one in chosen for complaint in tier_complaints(one, tiers)]
    every = mistakes()
    if is_too_few(sum(bool(one.tests["quick"]) for one in every), len(every)):
        complaints.append(f"quick tests are named for less than {SHARE_OF_QUICK} % of the {len(every)} mistakes")
    return complaints


def is_too_few(quick, tried):
    return 100 * quick < SHARE_OF_QUICK * tried


def targets_of(build):
    """The targets that a test runs, by the test's name."""
    told = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    folder, targets = str(pathlib.Path(build).resolve()), {}
    for test in json.loads(told)["tests"]:
        words = [word for word in test.get("command", []) if word.startswith(folder + "/") and not word.endswith((".xml", ".so"))]
        targets[test["name"]] = sorted({pathlib.Path(word).name for word in words} - {pathlib.Path(folder).name})
    return targets


def run(command):
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")


def finder_of(mistake, build, targets):
    """The tier that finds the mistake, or why none did."""
    for tier, tests in mistake.tests.items():
        if not tests:
            continue
        built = run(["cmake", "--build", build, "--target", *sorted({target for test in tests for target in targets[test]})])
        if built.returncode != 0:
            return f"does not compile\n{built.stdout[-1500:]}"
        tested = run(["ctest", "--test-dir", build, "-R", "^(%s)$" % "|".join(tests)])
        if "***Timeout" in tested.stdout:
            return f"{tier} tests ran out of time, which a busy machine does too"
        if tested.returncode != 0:
            return tier
    return "NOT FOUND"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true")
    options.add_argument("--build", default="build")
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("words", nargs="*")
    asked = options.parse_args()
    chosen = [one for one in mistakes()
              if not asked.words or any(re.search(word, one.file + " " + " ".join(sum(one.tests.values(), []))) for word in asked.words)]
    complaints = complaints_of(chosen)
    if asked.check or complaints:
        print("\n".join(complaints) or f"{len(chosen)} mistakes, each has its place, and its tests the tiers of their files")
        return bool(complaints)
    built = run(["cmake", "--build", asked.build])
    if built.returncode != 0:
        sys.exit(f"the tree without a mistake does not build\n{built.stdout[-1500:]}")
    targets, found = targets_of(asked.build), {}
    unknown = sorted({test for one in chosen for test in sum(one.tests.values(), []) if test not in targets})
    if unknown:
        sys.exit(f"no test is called {', '.join(unknown)}")
    tried = chosen[asked.first::asked.every]
    for one in tried:
        begun = time.time()
        path, text = one.make()
        try:
            tier = finder_of(one, asked.build, targets)
        finally:
            path.write_text(text)
        found[tier] = found.get(tier, 0) + 1
        print(f"{tier}: {one.file}: {one.wrong[0].strip()} ({time.time() - begun:.0f} s)", flush=True)
    quick, every = found.get("quick", 0), found.get("quick", 0) + found.get("thorough", 0)
    print(f"quick {quick} of {len(tried)}, all {every} of {len(tried)}")
    return every < len(tried) or len(tried) == len(mistakes()) and is_too_few(quick, len(tried))


if __name__ == "__main__":
    sys.exit(main())
