"""What the program says of itself: its settings and their values, its verbs and options, and whether it takes a command as it is shown."""
import functools
import pathlib
import re
import shlex
import subprocess

ALL_CAPITALS = re.compile(r"[A-Z_]+$")  # a place to fill in
ENDS_OF_A_COMMAND = {"|", "||", "&&", ">", ">>", "2>", ";"}


class Program:
    def __init__(self, path, root):
        self.path, self.root = str(path), pathlib.Path(root)
        self.settings = set(re.findall(r"^  ([a-z_]+(?:\.[a-z_0-9]+)*) =", self._said("--help-config"), re.M))
        self.sections = {setting.split(".")[0] for setting in self.settings}
        self.verbs = set(re.findall(r"^  ([a-z]+)  +\S", self._said("--help"), re.M))

    def _said(self, *words):
        return subprocess.run([self.path, *words], capture_output=True, text=True, check=True).stdout

    def _refusal(self, *words):
        done = subprocess.run([self.path, *words], capture_output=True, text=True, cwd=self.root)
        return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]

    @functools.cache
    def words_below(self, verb):
        """The second words of a verb that has some: `import` of `data`."""
        said = self._said(verb, "--help")
        return re.findall(r"^  ([a-z-]+)  +\S", said.split("Subcommands:")[1], re.M) if "Subcommands:" in said else []

    @functools.cache
    def options(self, verb):
        """Options of a verb and of what stands below it, and those that every verb has."""
        texts = [self._said(verb, "--help")] + [self._said(verb, name, "--help") for name in self.words_below(verb)]
        return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(texts))) | {"--help"}

    def all_options(self):
        return set().union(*(self.options(verb) for verb in self.verbs))

    def knows_setting(self, word):
        """A setting, or the name of several: `grid`, `optimizer.rate`."""
        return any(setting == word or setting.startswith(word + ".") for setting in self.settings)

    @functools.cache
    def refusal_of_value(self, setting, value):
        """Why the setting cannot have this value, whatever the others are; nothing where it can."""
        if ALL_CAPITALS.match(value):
            return ""
        said = self._refusal("--print-config", "--config", "configs/demo.yaml", f"{setting}={value}")
        return said if "allowed:" in said or "is not a setting" in said else ""

    def refusal_of_command(self, line):
        """Why the program refuses a line of the shell that starts it, mpirun before it or not; nothing where it does not."""
        words = shlex.split(line, comments=True)
        at = next(i for i, word in enumerate(words) if word.split("/")[-1] in ("mindpipe-train", "train_with_a_fault"))
        before, words = words[:at], words[at + 1:]
        words = words[:next((i for i, word in enumerate(words) if word in ENDS_OF_A_COMMAND), len(words))]
        verb = words.pop(0) if words and re.fullmatch(r"[a-z]+", words[0]) else "train"
        if verb not in self.verbs:
            return f"mindpipe-train has no verb {verb}"
        if self.words_below(verb) and words and words[0] not in self.words_below(verb) and not words[0].startswith("-"):
            return f"mindpipe-train {verb} has no {words[0]}"
        for word in words:
            if word.startswith("--") and word.split("=")[0] not in self.options(verb) | {"--help-config", "--version"}:
                return f"mindpipe-train {verb} has no option {word}"
        if "--print-config" not in self.options(verb) or not any("=" in word or word == "--config" for word in words):
            return ""
        words, ranks = self._on_this_machine(words), [before[at + 1] for at, word in enumerate(before[:-1]) if word == "-n"]
        if verb == "train" and ranks:  # a plan knows whether the grid fits so many ranks
            return self._refusal("plan", "--ranks", ranks[0], *words)
        if verb == "plan" and "--search" not in words:  # a simulation refuses nothing that a plan takes
            return self._refusal(verb, *(word for word in words if word != "--simulate"))
        return self._refusal(verb, "--print-config", *words)

    def _on_this_machine(self, words):
        """The words with a bundled configuration in the place of one that is the reader's own, and without places to fill in."""
        words = [word for word in words if not ALL_CAPITALS.match(word.split("=")[-1]) and word != "..."]
        if "--max-walltime" in words:  # says nothing of the grid
            del words[words.index("--max-walltime"):words.index("--max-walltime") + 2]
        for at, word in enumerate(words[1:], 1):
            if words[at - 1] == "--config" and (not word.startswith("configs/") or word.endswith("...")):
                words[at] = "configs/demo.yaml"
        return words if "--config" in words[:-1] else ["--config", "configs/demo.yaml"] + [w for w in words if w != "--config"]
