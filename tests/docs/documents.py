"""What the documentation must be like: words, columns, sentences, links, names of files, settings, targets and verbs.

Every rule is a function from a Tree and a document to complaints; documents_test.py runs them.
"""
import pathlib
import re
import statistics
import subprocess

MOST_WORDS_OF_README, MOST_COLUMNS, MOST_MEDIAN_SENTENCE = 900, 140, 20
ENDINGS_OF_FILES = {"json", "jsonl", "yaml", "safetensors", "h5", "bin", "idx", "txt", "py", "cpp", "h", "md", "svg", "sh"}
ROOMS = ("src", "kernels", "tests", "docs", "scripts", "configs", "data", ".github")


class Tree:
    """The repository, and what the program and the Makefile say of themselves."""

    def __init__(self, root, program):
        self.root = pathlib.Path(root)
        said = subprocess.run([program, "--help-config"], capture_output=True, text=True, check=True).stdout
        self.settings = set(re.findall(r"^  ([a-z_]+(?:\.[a-z_0-9]+)+) =", said, re.M)) | {"seed"}
        overview = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        self.verbs = set(re.findall(r"^  ([a-z]+)  +\S", overview, re.M))
        self.targets = set(re.findall(r"^([a-z-]+):", (self.root / "Makefile").read_text(), re.M))

    def documents(self):
        """Texts for readers: not what stands below .github."""
        listed = subprocess.run(["git", "-C", self.root, "ls-files", "-co", "--exclude-standard", "*.md"],
                                capture_output=True, text=True, check=True).stdout.split()
        return [name for name in listed if not name.startswith(".github/")]

    def text(self, name):
        return (self.root / name).read_text()


def without_code(text):
    """The text without fenced and indented blocks, tables and comments."""
    text = re.sub(r"<!--.*?-->", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), flags=re.S)
    lines, before = [], ""
    for line in text.split("\n"):
        is_block = line.startswith("    ") and (not before.strip() or before.startswith("    "))
        if not is_block and not line.startswith("|"):
            lines.append(line)
        before = line
    return "\n".join(lines)


def words_of(text):
    """Words as a reader counts them: an address of a link is none, and neither is a mark."""
    text = re.sub(r"<!--.*?-->", "", re.sub(r"\]\([^)]*\)", "]", text), flags=re.S)
    return [word for word in text.split() if re.search(r"\w", word)]


def sentences_of(text):
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.)\s)", without_code(text))
    for paragraph in paragraphs:
        if paragraph.lstrip().startswith("#"):
            continue
        for sentence in re.split(r"(?<=[.!?:])[*)`\"]*\s+", paragraph):
            words = words_of(sentence)
            if len(words) > 1:
                yield words


def too_many_words(tree, name, text):
    count = len(words_of(text))
    if name == "README.md" and count > MOST_WORDS_OF_README:
        yield f"{count} words (at most {MOST_WORDS_OF_README})"


def too_wide(tree, name, text):
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > MOST_COLUMNS and not line.startswith("|") and not re.search(r"\]\(\S{20,}\)|https?://\S{40,}", line):
            yield f"line {number} has {len(line)} columns (at most {MOST_COLUMNS})"


def too_long_sentences(tree, name, text):
    lengths = [len(words) for words in sentences_of(text)]
    if lengths and (name == "README.md" or name.startswith("docs/")):
        if (median := statistics.median(lengths)) > MOST_MEDIAN_SENTENCE:
            yield f"the median sentence has {median} words (at most {MOST_MEDIAN_SENTENCE})"


def broken_links(tree, name, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        if not (tree.root / name).parent.joinpath(target.split("#")[0]).exists():
            yield f"the link {target} leads nowhere"


def codes_of(text):
    """What stands between backquotes, and the lines of code blocks."""
    yield from re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    for line in text.split("\n"):
        if line.startswith("    "):
            yield line.strip()


def unknown_files(tree, name, text):
    to_be_made = set(re.findall(r"`([\w./]+)`:\n\n```cpp\n", text))  # by a worked change
    for code in codes_of(text):
        for path in re.findall(r"(?<![\w./-])((?:%s)/[\w./*<>{},-]+)" % "|".join(map(re.escape, ROOMS)), code):
            path = path.rstrip(".,")
            if re.search(r"[<>{}]|[A-Z]{4}", path):  # a pattern, a place to fill in
                continue
            if path in to_be_made:
                continue
            if not any(tree.root.glob(path)) and not any((tree.root / name).parent.glob(path)):
                yield f"there is no {path}"


def unknown_settings(tree, name, text):
    sections = {setting.split(".")[0] for setting in tree.settings}
    for code in codes_of(text):
        for word in re.findall(r"(?<![\w./-])([a-z_]+(?:\.[a-z_0-9]+)+)(?![\w/*-])", code):
            parts = word.split(".")
            if parts[0] not in sections or parts[-1] in ENDINGS_OF_FILES:
                continue
            if not any(setting == word or setting.startswith(word + ".") for setting in tree.settings):
                yield f"there is no setting {word}"


def unknown_commands(tree, name, text):
    for code in codes_of(text):
        for target in re.findall(r"(?<![\w/-])make ([a-z][a-z-]*)", code):
            if target not in tree.targets:
                yield f"there is no make {target}"
        for verb in re.findall(r"mindpipe-train ([a-z]+)(?![\w=.])", code):
            if verb not in tree.verbs:
                yield f"mindpipe-train has no verb {verb}"


RULES = (too_many_words, too_wide, too_long_sentences, broken_links, unknown_files, unknown_settings, unknown_commands)


def lost_pointers(tree):
    """Pages of docs/ that code, scripts and configurations point to and that are not there."""
    found = subprocess.run(["git", "-C", tree.root, "grep", "-noE", r"docs/[a-z0-9-]+\.(md|svg)", "--", "src", "kernels",
                            "scripts", "configs", "Makefile", "CMakeLists.txt", "*.h", "*.cpp"], capture_output=True, text=True)
    for line in found.stdout.splitlines():
        place, number, page = line.split(":", 2)
        if not (tree.root / page).exists():
            yield f"{place}:{number}: there is no {page}"


def rows_of(text, first_column):
    """The rows of the table whose head begins with this cell: each a list of cells."""
    lines = text.split("\n")
    start = next(at for at, line in enumerate(lines) if re.match(rf"\|\s*{first_column}\s*\|.*\w", line))
    rows = []
    for line in lines[start + 2:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def ticks_without_a_test(tree):
    """Each of our own ticks on the front page has tests in docs/comparison.md, and they are tests."""
    table = tree.text("README.md").split("## What is there", 1)[1]
    ticked = {row[0] for row in rows_of(table, "") if row[1] == "✓"}
    tested = {row[0]: re.findall(r"\]\(\.\./([^)]+)\)", row[1])
              for row in rows_of(tree.text("docs/comparison.md"), "feature")}
    for feature in sorted(ticked ^ tested.keys()):
        yield f"{feature}: it stands in one of README.md and docs/comparison.md only"
    for feature in sorted(ticked & tested.keys()):
        files = tested[feature]
        if not files:
            yield f"{feature}: no test is named"
        for file in files:
            if not file.endswith("_test.cpp") or not re.search(r"^TEST", tree.text(file), re.M):
                yield f"{feature}: {file} is no test"
