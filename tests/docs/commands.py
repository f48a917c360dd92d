"""The command blocks of the documentation that are marked <!-- run -->, and the output that a reader is shown behind them."""
import re
import subprocess


class Block:
    def __init__(self, line, commands, shown):
        self.line, self.commands, self.shown = line, commands, shown


def blocks_of(text):
    """Marked blocks: an indented block of commands, then, perhaps, a fenced block of what they print."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if line.strip() != "<!-- run -->":
            continue
        end = at + 1
        commands, shown = [], None
        while end < len(lines) and lines[end].startswith("    "):
            commands.append(lines[end][4:])
            end += 1
        while end < len(lines) and not lines[end].strip():
            end += 1
        if end < len(lines) and lines[end].startswith("```"):
            close = next(i for i in range(end + 1, len(lines)) if lines[i].startswith("```"))
            shown = lines[end + 1:close]
        yield Block(at + 2, commands, shown)


def alike(text):
    """The text with what differs from machine to machine taken out: fractions, units of what is measured, names of hashes.

    Hashes become letters in the order in which they come, so that equal ones stay equal and others stay others.
    """
    names = {}
    text = re.sub(r"\b[0-9a-f]{16}\b", lambda found: names.setdefault(found.group(), f"<hash {len(names)}>"), text)
    text = re.sub(r"\b\d+\.\d+[kM]?\b", "<number>", text)
    return re.sub(r"<number> (us|ms|s|bytes|KiB|MiB|GiB|%)", "<measured>", text)


def missing_lines(shown, printed):
    """Lines of the shown output that the printed one lacks, in order; `...` stands for the rest of a line, or for lines."""
    wanted = alike("\n".join(shown)).split("\n")
    there, at, missing = alike(printed).split("\n"), 0, []
    for line in wanted:
        if line.strip() in ("", "..."):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in " ".join(line.split()).split("...")))
        found = next((i for i in range(at, len(there)) if pattern.fullmatch(" ".join(there[i].split()))), None)
        if found is None:
            missing.append(line)
        else:
            at = found + 1
    return missing


def run(block, folder, environment, instead):
    """Runs the block's commands; complaints. `instead`: commands whose place others take."""
    commands = "\n".join(instead.get(command, command) for command in block.commands)
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", commands], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=200)
    if done.returncode != 0:
        return [f"line {block.line}: exit code {done.returncode}\n{commands}\n{done.stdout[-3000:]}"]
    missing = missing_lines(block.shown, done.stdout) if block.shown is not None else []
    return [f"line {block.line}: the output has no line {line!r}\n{done.stdout[-3000:]}" for line in missing]
