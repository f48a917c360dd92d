#!/usr/bin/env python3
"""count_proofs.py [TREE [EARLIER TREE]]: counts what the tests of a tree prove, so that a change of the tests can be held against the
tree before it. Exit code 1: some count is smaller than in the earlier tree.

Counted are the rows of mutation tables (each a mistake that a test makes and has to find), golden lines, sentences that tests expect, the
dimensions of covering choices, the pairs of options that they cover, tests, and pairs of a test and a number of ranks."""
import pathlib
import re
import sys

STRING = r'"(?:[^"\\\n]|\\.)*"'
LITERALS = re.compile(r'%s(?:\s*%s)*' % (STRING, STRING))
MISTAKE = re.compile(r"set_mutation\(|\bMistakes\b|mistake|[Mm]utat|[Ww]rong|[Ss]poil|[Ll]eft_?[Oo]ut|[Dd]amage")


def text_of(path):
    return path.read_text(encoding="utf-8", errors="replace")


def sources(tree, *endings):
    return [path for path in sorted((tree / "tests").rglob("*")) if path.suffix in endings and path.is_file()]


def sentences(text):
    """Texts of at least five words among the literals of a C++ source, adjacent ones joined."""
    for literal in LITERALS.finditer(text):
        joined = "".join(part[1:-1] for part in re.findall(STRING, literal.group()))
        if len(re.findall(r"[A-Za-z]{2,}", joined)) >= 5:
            yield joined


def refused_sentences(tree):
    found = set()
    for path in sources(tree, ".cpp", ".h"):
        for statement in re.split(r";\s*\n", text_of(path)):
            if re.search(r"EXPECT_|ASSERT_|complaint|refus|HasSubstr|WrongList|^\s*\{", statement):
                found.update(sentences(statement))
    return len(found)


def rows(text):
    """Rows of the tables of a source: braces that begin with a name or a text, at the beginning of a line or behind a comma."""
    return len(re.findall(r"\bCase\{", text)) + len(re.findall(r"(?m)^\s+(?:[A-Z]\w+)?\{(?:\"|[A-Za-z_]+[,}(]|\.)", text))


def mutation_rows(tree):
    total = 0
    for path in sources(tree, ".cpp", ".h"):
        text = text_of(path)
        if re.search(r"mutation|wrong|off_the_table|left_out|told_differences|starts_test|stretches_test", path.name):
            total += rows(text) + len(re.findall(r"(?m)^\s*TEST(?:_[FP])?\(", text))
        else:
            total += len(re.findall(r"(?m)^\s*TEST(?:_[FP])?\([^)]*(?:Found|Noticed|Mistake|Mutat)[^)]*\)", text))
    for path in sources(tree, ".py"):
        if MISTAKE.search(text_of(path)):
            total += len(re.findall(r"(?m)^\s+\(\"|^def test\w*(?:found|mistake|noticed)", text_of(path)))
    return total


def golden(tree):
    lines = [line for path in sorted((tree / "tests/golden").glob("*.txt")) for line in text_of(path).splitlines()
             if path.name != "covering.txt" and line and not line.startswith("#")]
    in_sources = sum(len(re.findall(r"\b[0-9a-f]{64}\b", text_of(path))) for path in sources(tree, ".cpp", ".h", ".py"))
    return len(lines) + in_sources


def covering_dimensions(tree):
    """Names of the enumerations that end in `dimensions`, which are the arguments of covering<>."""
    total = 0
    for path in sources(tree, ".cpp", ".h"):
        for names in re.findall(r"enum\s*\w*\s*\{([^}]*)\}", text_of(path)):
            listed = [name.strip() for name in names.split(",") if name.strip()]
            total += len(listed) - 1 if listed[-1].endswith("dimensions") else 0
    return total


def covered_pairs(tree):
    """The pairs that tests/golden/covering.txt names, which a test compares with what is covered; None in a tree without it."""
    path = tree / "tests/golden/covering.txt"
    return sum(int(number) for number in re.findall(r"(\d+) pairs", text_of(path))) if path.exists() else None


def tests(tree):
    return sum(len(re.findall(r"(?m)^(?:TYPED_)?TEST(?:_[FP])?\(", text_of(path))) for path in sources(tree, ".cpp", ".h"))


def tests_of_ranks(tree):
    total = 0
    for path in sources(tree, ".cpp"):
        first = text_of(path).split("\n", 1)[0]
        if path.name.endswith("_mpi_test.cpp"):
            total += len(set(re.findall(r"\d+", first)))
        elif path.name.endswith("_test.cpp"):
            total += 1
    return total + len([path for path in sources(tree, ".py", ".sh") if path.name.endswith("_test.py")])


COUNTS = [("rows of mutation tables, and tests of one mistake", mutation_rows), ("golden lines and hashes", golden),
          ("sentences that are expected", refused_sentences), ("covering dimensions", covering_dimensions),
          ("pairs covered", covered_pairs), ("tests of C++", tests), ("files by numbers of ranks", tests_of_ranks)]


def main(arguments):
    trees = [pathlib.Path(argument) for argument in arguments] or [pathlib.Path(__file__).resolve().parents[1]]
    fewer = False
    for name, count in COUNTS:
        numbers = [count(tree) for tree in trees]
        fewer |= len(numbers) == 2 and None not in numbers and numbers[0] < numbers[1]
        print("%-52s %s" % (name, "  before: ".join("-" if number is None else "%6d" % number for number in numbers)))
    return 1 if fewer else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
