"""What the documentation must be like: words, columns, sentences, links, names of files, settings, targets and verbs.

Every rule is a function from a Tree and a document to complaints; documents_test.py runs them.
"""
import pathlib
import re
import statistics
import subprocess

from program import Program

MOST_WORDS_OF_README, MOST_COLUMNS, MOST_MEDIAN_SENTENCE = 900, 140, 20
ENDINGS_OF_FILES = {"json", "jsonl", "yaml", "safetensors", "h5", "bin", "idx", "txt", "py", "cpp", "h", "cu", "md", "svg", "sh", "so"}
ROOMS = ("src", "kernels", "tests", "docs", "scripts", "configs", "data", ".github")


# Words with dots that are no settings: names of PTX instructions, of a file's tensors, of a library's function, of spaces and of a unit.
DOTTED_WORDS_OF_OTHERS = {"mma.sync", "ld.global.v4", "a.matrix", "b.half", "c.numbers", "safetensors.torch.save_file",
                          "cv.c1", "cv.c2", "cv.c3", "nlp.c0", "nlp.c1", "nlp.c2", "nlp.c3", "blocks.7.3",
                          "h.0.ln_1.weight", "mindspore.nn"}
REGISTRIES = ("pypi.org", "crates.io", "npmjs.com", "anaconda.org", "hub.docker.com", "packages.debian.org", "rubygems.org")
OPTIONS_OF_OTHERS = {"--begin", "--cpus-per-task", "--mpi", "--mca", "--oversubscribe", "--gtest_filter"}  # of srun, mpirun and GoogleTest


class Tree:
    """The repository, what the program says of itself, and the Makefile's targets."""

    def __init__(self, root, program):
        self.root, self.program = pathlib.Path(root), Program(program, root)
        self.targets = set(re.findall(r"^([a-z-]+):", (self.root / "Makefile").read_text(), re.M))
        scripts = [path.read_text() for ending in ("py", "sh") for path in self.root.glob(f"scripts/**/*.{ending}")]
        self.options_of_scripts = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", "\n".join(scripts)))

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
    count = len(re.sub(r"<!--.*?-->", "", text, flags=re.S).split())
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


def anchors_of(text):
    """What links may name behind #: the headings, as GitHub writes them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in re.findall(r"^#+ (.*)", text, re.M)}


def broken_links(tree, name, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        page = (tree.root / name).parent.joinpath(path) if path else None
        if page and not page.exists():
            yield f"the link {target} leads nowhere"
        elif anchor and anchor not in anchors_of(page.read_text() if page else text):
            yield f"the link {target} names no heading"


def codes_of(text):
    """What stands between backquotes, and the lines of indented blocks; a line that ends in a backslash goes on in the next."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"^    .*", "", text, flags=re.M)):
        yield " ".join(code.split())
    for line in re.sub(r"\\\n +", " ", text).split("\n"):
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
    for code in codes_of(text):
        for word in re.findall(r"(?<![\w./-])([a-z_]+(?:\.[a-z_0-9]+)+)(?![\w/*(\[-]|:\S)", code):
            if word.split(".")[-1] in ENDINGS_OF_FILES or ".so." in word or word in DOTTED_WORDS_OF_OTHERS:
                continue
            if not tree.program.knows_setting(word):
                yield f"there is no setting {word}"


def settings_with_values(text):
    """Settings beside a value: `a.b=c`, `a.b: c`, `a: {b: c}`, and the first cells of a table whose head is a setting."""
    for code in codes_of(text):
        if "mindpipe-train" not in code:
            yield from re.findall(r"(?<![\w./-])([a-z_]+(?:\.[a-z_0-9]+)+)(?:=|: )(\[[^]]*\]|[^\s,;]+)", code)
            for section, inner in re.findall(r"^([a-z_]+): \{([^}]*)\}$", code):
                yield from ((f"{section}.{key}", value) for key, value in re.findall(r"(\w+): ([^\s,]+)", inner))
    setting = None
    for line in text.split("\n"):
        cell = re.match(r"\|\s*`([^`]+)`\s*\|", line)
        if not line.startswith("|"):
            setting = None
        elif cell and setting:
            yield setting, cell.group(1)
        elif cell and is_head(text, line):
            setting = cell.group(1)


def is_head(text, line):
    return re.search(re.escape(line) + r"\n\|[-| ]+\n", text) is not None


def wrong_values(tree, name, text):
    to_be_made = set(re.findall(r'^  kind\(\w+, "([^"]+)"', text, re.M))  # by a worked change
    for setting, value in settings_with_values(text):
        if value not in to_be_made and tree.program.knows_setting(setting) and (said := tree.program.refusal_of_value(setting, value)):
            yield f"{setting} cannot be {value}: {said}"


def unknown_commands(tree, name, text):
    for code in codes_of(text):
        for target in re.findall(r"(?<![\w/-])make ([a-z][a-z-]*)", code):
            if target not in tree.targets:
                yield f"there is no make {target}"
        if re.search(r"(?:mindpipe-train|train_with_a_fault) (?!\.)\S", code) and (said := tree.program.refusal_of_command(code)):
            yield f"{code}: {said}"


def unknown_options(tree, name, text):
    """Options that stand alone are the program's, or a script's; those of commands are looked at with their command."""
    known = tree.program.all_options() | tree.options_of_scripts | OPTIONS_OF_OTHERS
    for code in codes_of(text):
        option = re.match(r"(--[a-z][\w-]*)", code)
        if option and option.group(1) not in known:
            yield f"nothing of ours has an option {option.group(1)}"
        script = re.match(r"(scripts/[\w./]+\.(?:py|sh)) ", code)
        for word in re.findall(r" (--[a-z][\w-]*)", code) if script else ():
            if word not in tree.text(script.group(1)):
                yield f"{script.group(1)} has no option {word}"


def links_to_registries(tree, name, text):
    """A project is linked where its repository or its documentation is."""
    for registry in re.findall(r"https?://(?:www\.)?(%s)/" % "|".join(map(re.escape, REGISTRIES)), text):
        yield f"{registry} is a registry of packages; link the project's repository"


RULES = (too_many_words, too_wide, too_long_sentences, broken_links, links_to_registries,
         unknown_files, unknown_settings, wrong_values, unknown_commands, unknown_options)


def lost_pointers(tree):
    """Pages of docs/ that code, scripts and configurations point to and that are not there."""
    found = subprocess.run(["git", "-C", tree.root, "grep", "-noE", r"docs/[a-z0-9-]+\.(md|svg)", "--", "src", "kernels",
                            "scripts", "configs", "Makefile", "CMakeLists.txt", "*.h", "*.cpp"], capture_output=True, text=True)
    for line in found.stdout.splitlines():
        place, number, page = line.split(":", 2)
        if not (tree.root / page).exists():
            yield f"{place}:{number}: there is no {page}"


def floors_of_another_list(tree):
    """Rows of the table of floors that are not those of src/floors.txt, in its order."""
    floors = [re.match(r"([a-z]+): *[a-z ]*\| (.*)", line) for line in (tree.root / "src/floors.txt").read_text().splitlines()]
    listed = [[f"`{'' if floor[1] == 'kernels' else 'src/'}{floor[1]}`", floor[2]] for floor in floors if floor]
    if rows_of(tree.text("docs/architecture.md"), "floor") != listed:
        yield "docs/architecture.md: its floors are not those of src/floors.txt"


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


# What a test of a tick says in its name or its code: a test that is named for another claim by mistake does not.
WORDS_OF_TICKS = {
    "same bits on every layout": r"BitsOfOneRank|all_mutations",
    "step checked before it runs": r"\berrors\(\)",
    "step simulated in virtual time": r"TheSimulators",
    "pipeline, data and tensor parallelism": r"EveryLayout",
    "zero-bubble schedule": r'"zb-h1"',
    "resume on another layout": r"OnAnotherGrid",
    "BERT, encoder-decoders, ViT": r'learns\("(bert|transformer|vit)"',
    "supernets in causal order": r"OneAfterTheOther",
    "finds the layout by itself": r"search_layouts|grid=auto|FindsTheBest",
    "no Python at run time": r"Not\(HasSubstr\(\"python\"\)\)",
    "trains on CPUs": r"Learns",
}


def code_of_test(text, name):
    """A test of this full name: its head and body, without comments; nothing where there is none."""
    suite, _, test = name.partition(".")
    found = re.search(rf"^TEST(?:_F|_P)?\({suite}, {test}\) \{{.*?^\}}", text, re.M | re.S)
    return re.sub(r"//[^\n]*", "", found.group()) if found else ""


def ticks_without_a_test(tree):
    """Complaints: each of our own ticks on the front page has tests in docs/comparison.md, which are tests of it."""
    table = tree.text("README.md").split("## What is there", 1)[1]
    ticked = {row[0] for row in rows_of(table, "") if row[1] == "✓"}
    tested = {row[0]: re.findall(r"\[([^]]+)\]\(\.\./([^)]+)\)", row[1])
              for row in rows_of(tree.text("docs/comparison.md"), "feature")}
    for feature in sorted(ticked ^ tested.keys()):
        yield f"{feature}: it stands in one of README.md and docs/comparison.md only"
    for feature in sorted(ticked & tested.keys()):
        yield from complaints_of_tick(tree, feature, tested[feature])


def complaints_of_tick(tree, feature, tests):
    if not tests:
        yield f"{feature}: no test is named"
    if feature not in WORDS_OF_TICKS:
        yield f"{feature}: WORDS_OF_TICKS does not say what a test of it says"
    for name, file in tests:
        code = code_of_test(tree.text(file), name)
        if not code:
            yield f"{feature}: {file} has no test {name}"
        elif not re.search(WORDS_OF_TICKS.get(feature, ""), code):
            yield f"{feature}: {name} says nothing of it"
