#!/usr/bin/env python3
"""filters_test.py BUILD: each test that the Makefile and scripts choose by a filter of GoogleTest is in the program that they call. A
filter that chooses nothing passes in silence."""
import fnmatch
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1])
PLACES = [ROOT / "Makefile", *sorted((ROOT / "scripts").rglob("*.sh")), *sorted((ROOT / "scripts").rglob("*.py"))]
# A program, and on its line, which may go on, a filter in quotes.
CALL = re.compile(r"\b(test_\w+)\b(?:[^\n]|(?<=\\)\n)*?[= ]'([A-Z*][\w*./:]+)'")


def programs():
    """The program of each test file, by the file's name as ctest has it. A program need not be built yet."""
    found = {}
    for line in (BUILD / "tests/CTestTestfile.cmake").read_text().splitlines():
        test, program = re.match(r"add_test\(\W*(\w+)", line), re.search(r'/(test_\w+)"', line)
        if test and program:
            found[re.sub(r"(_\d+)?(_rest)?$", "", test[1])] = program[1]
    return found


def tests_of(program, of):
    """Suite.Test of all files of a program."""
    for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
        name = "_".join(path.relative_to(ROOT / "tests").parts).removesuffix("_test.cpp")
        if of.get(name) == program:
            for suite, test in re.findall(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", path.read_text(), re.M):
                yield f"{suite}.{test}"


class Filters(unittest.TestCase):
    def test_each_names_a_test_of_its_program(self):
        of, calls = programs(), 0
        for place in PLACES:
            for program, choice in CALL.findall(place.read_text()):
                there = list(tests_of(program, of))
                for piece in choice.split(":"):
                    calls += 1
                    wanted = piece.split("/")[1] if "/" in piece else piece  # of typed tests one type
                    with self.subTest(place=place.name, program=program, choice=piece):
                        chosen = fnmatch.filter(there, wanted) or fnmatch.filter(there, wanted + ".*")
                        self.assertTrue(chosen, "this program has no such test")
        self.assertGreater(calls, 15)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
