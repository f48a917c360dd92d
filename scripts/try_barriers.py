#!/usr/bin/env python3
"""try_barriers.py [--list] [--build BUILD] [WORD ...]: makes mistakes with the shared memory of kernels/cuda/device, one at a time in this
tree, builds the tests that run these kernels on the host, and says which tier found it. The file is put back as it was.

Each barrier is left out, and moved by a line up and down; each statement that writes shared memory is left out; each launch bound is
halved. A move past a statement that touches no shared memory changes nothing and is not made; other moves that are right stand in RIGHT.
WORD: only mistakes whose line of --list has it. Exit code 1: a mistake was not found. Each takes 10 to 30 seconds on two cores."""
import argparse
import re
import sys
import time

import try_mistakes
from try_mistakes import ROOT

FOLDER = ROOT / "kernels/cuda/device"
BARRIER = re.compile(r"^\s*__sync(threads|warp)\(\);")
BOUNDS = re.compile(r"__launch_bounds__\(([^(),]*)([^()]*)\)")
DECLARED = re.compile(r"^\s*__shared__ [^;]*;")
# Files that work in the shared memory of attention, the structure `t`, and the tests that run them; the rest is run by the other.
OF_ATTENTION = re.compile(r"^flash_|^tile_sums|^block")
TESTS = {True: "kernels_cuda_on_host_flash thorough: kernels_cuda_on_host_flash_cases", False: "kernels_cuda_on_host"}

# Moves that leave a kernel right: file, what the statement begins with that the barrier goes past, and why.
RIGHT = [
    ("sort.cu", "for_tokens(rows, n, shift, [&]", "the barrier stands before each token instead of before all"),
    ("norm_backward.cu", "if (teams > 1) {", "all threads of a block see the same number of teams"),
    ("norm_backward.cu", "}", "all threads of a block see the same number of teams"),
    ("flash_forward.h", "load<T, rows, width>(t.k,", "keys of before were read before the two barriers around the softmax"),
    ("flash_forward.h", "if (call.threshold != 0) draw_mask", "the mask is read behind the next barrier only"),
    ("flash_backward.h", "});", "the barrier stands behind each element that a thread writes, and all threads write as many"),
]


def code_of(line):
    return line.split("//")[0].rstrip()


def is_code(line):
    return code_of(line) != "" and not line.lstrip().startswith("#")


def is_end(line):
    return not is_code(line) or code_of(line)[-1] in ";{}"


def statement_before(lines, at):
    """The lines [first, last + 1) of the statement, or of the brace, that stands before this one."""
    last = at - 1
    while not is_code(lines[last]):
        last -= 1
    first = last
    while not is_end(lines[first - 1]):
        first -= 1
    return first, last + 1


def statement_from(lines, at):
    """That begins here or behind blank lines."""
    first = at
    while not is_code(lines[first]):
        first += 1
    last = first
    while not is_end(lines[last]):
        last += 1
    return first, last + 1


def without(lines, first, end):
    return lines[:first] + lines[end:]


def is_wrong_past(name, passed, shared):
    """Whether a barrier that goes past this statement is a mistake."""
    code = "\n".join(code_of(line) for line in passed).strip()
    is_right = any(name == file and code.startswith(begin) for file, begin, _ in RIGHT)
    return not is_right and re.search(shared + r"|[{}]$|^\}", code)


def barriers(name, lines, shared):
    for at, line in enumerate(lines):
        if not BARRIER.match(line):
            continue
        yield at, "left out", without(lines, at, at + 1)
        first, end = statement_before(lines, at)
        if is_wrong_past(name, lines[first:end], shared):
            yield at, "moved up", lines[:first] + [line] + lines[first:at] + lines[at + 1:]
        first, end = statement_from(lines, at + 1)
        if is_wrong_past(name, lines[first:end], shared):
            yield at, "moved down", lines[:at] + lines[at + 1:end] + [line] + lines[end:]


def bounds(lines):
    for at, line in enumerate(lines):
        if BOUNDS.search(line):
            yield at, "halved", lines[:at] + [BOUNDS.sub(r"__launch_bounds__((\1) / 2\2)", line)] + lines[at + 1:]


def shared_names(lines, of_attention):
    """A regular expression for what lies in shared memory."""
    names = {"t"} if of_attention else {"of_warps"}
    for line in lines:
        if DECLARED.match(line):
            names.update(re.findall(r"(\w+)(?:\[[^]]*\])*[,;]", line))
    return r"\b(?:%s)\b" % "|".join(sorted(names))


def writes(lines, shared):
    name = shared + r"[\w.]*"
    write = re.compile(name + r"(?:\[[^]]*\])+ \+?= |put\(" + name + r"\[|load<[^>]*>\(" + name + r"|draw_mask<rows>\(call|hold\(held")
    for at, line in enumerate(lines):
        if write.search(code_of(line)) and not DECLARED.match(line):
            first, end = statement_from(lines, at)
            while not is_end(lines[first - 1]):
                first -= 1
            yield first, "not written", without(lines, first, end)


def mistakes():
    """(what it is, the mistake as try_mistakes makes it) for each."""
    for path in sorted([*FOLDER.glob("*.cu"), *FOLDER.glob("*.h")]):
        lines = path.read_text().split("\n")
        of_attention = bool(OF_ATTENTION.match(path.name))
        shared = shared_names(lines, of_attention)
        for at, what, changed in [*barriers(path.name, lines, shared), *bounds(lines), *writes(lines, shared)]:
            one = try_mistakes.Mistake(f"{path.relative_to(ROOT)}: {TESTS[of_attention]}")
            one.right, one.wrong = lines, changed
            yield f"{path.name}:{at + 1}: {what}: {lines[at].strip()}", one


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--list", action="store_true")
    options.add_argument("--build", default="build")
    options.add_argument("words", nargs="*")
    asked = options.parse_args()
    chosen = [(what, one) for what, one in mistakes() if not asked.words or any(word in what for word in asked.words)]
    if asked.list:
        print("\n".join(what for what, _ in chosen))
        return 0
    targets, found = try_mistakes.targets_of(asked.build), 0
    for one in {str(one.tests): one for _, one in chosen}.values():
        answer = try_mistakes.finder_of(one, asked.build, targets)
        if answer != "NOT FOUND":
            sys.exit(f"try_barriers.py: without a mistake, too: {answer}")
    for what, one in chosen:
        begun = time.time()
        path, text = one.make()
        try:
            tier = try_mistakes.finder_of(one, asked.build, targets)
        finally:
            path.write_text(text)
        found += tier in one.tests
        print(f"{tier}: {what} ({time.time() - begun:.0f} s)", flush=True)
    print(f"{found} of {len(chosen)} found")
    return found < len(chosen)


if __name__ == "__main__":
    sys.exit(main())
