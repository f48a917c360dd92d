#!/usr/bin/env python3
"""extending_test.py BUILD: the code that docs/extending.md shows compiles against the tree, in a folder that shadows its headers.

A block of C++ is a new file (it begins with # and the text before it names the file), an include of a file that is
there, a line of a list ("line in `LIST` of `FILE`"), or a part of a file that is there (the text before it names the
file). Code that the tree no longer takes is an error of the compiler.
"""
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT, MODELS = "docs/extending.md", "mindpipe_models.dir"  # a command of the compiler that makes it is taken
NAMESPACE_END = "}  // namespace mindpipe"


def changes_of(text):
    """(what is told before it, code) of each block of C++."""
    at = 0
    for block in re.finditer(r"^```cpp\n(.*?)^```", text, re.M | re.S):
        yield " ".join(text[at:block.start()].split()), block.group(1)
        at = block.end()


def with_line_of_list(text, name, line):
    """The text with one more line in a macro that lists things."""
    macro = re.search(rf"^#define {name}\((?:[^\n]*\\\n)*[^\n]*", text, re.M)
    if not macro:
        sys.exit(f"{DOCUMENT}: there is no list {name}")
    return text[:macro.end()] + " \\\n" + line.rstrip() + text[macro.end():]


def shadow(shadowed):
    """Fills a folder with links to all headers, which are found there by each other."""
    for header in [path for folder in ("src", "kernels") for path in (ROOT / folder).rglob("*.h")]:
        link = shadowed / header.relative_to(ROOT)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(header)


def apply(told, code, shadowed):
    """Makes one change in the folder; the path of a new file, or none."""
    lists = re.findall(r"line in `(\w+)` of `([\w./]+)`", told)
    path = lists[-1][1] if lists else re.findall(r"`((?:src|kernels)/[\w./]+)`:?$", told)[-1]
    changed = shadowed / path
    if not lists and all(line.startswith("#include") for line in code.splitlines()):
        before = changed.read_text()
        changed.unlink()
        changed.write_text(before.replace("#pragma once\n", "#pragma once\n" + code, 1))
        return None
    if code.startswith("#"):
        if (ROOT / path).exists():
            sys.exit(f"{DOCUMENT}: {path} is there already")
        changed.write_text(code)
        return path
    before = changed.read_text()
    changed.unlink()  # the link, and not what it leads to
    if lists:
        changed.write_text(with_line_of_list(before, lists[-1][0], code))
    else:
        changed.write_text(NAMESPACE_END.join(before.rsplit(NAMESPACE_END, 1)[:1]) + code + NAMESPACE_END + "\n")
    return None


def compiler(build, shadowed):
    """The command that compiles models, without its files, and with the folder in the place of the tree."""
    commands = json.loads((pathlib.Path(build) / "compile_commands.json").read_text())
    found = next(one for one in commands if f"{MODELS}/" in one["command"] and "cmake_pch" not in one["file"])
    words = shlex.split(found["command"])
    start = next(i for i, word in enumerate(words) if re.search(r"(\+\+|clang)[^/]*$", word))
    kept, words = [words[start]], [word.replace(f"-I{ROOT}/", f"-I{shadowed}/") for word in words[start + 1:]]
    while words:
        word = words.pop(0)
        if word == "-o":
            words.pop(0)
        elif word not in ("-c", found["file"]):
            kept.append(word)
    return kept + ["-fsyntax-only", "-Werror", "-x", "c++"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        shadowed = pathlib.Path(folder)
        shadow(shadowed)
        changes = list(changes_of((ROOT / DOCUMENT).read_text()))
        files = [path for path in (apply(told, code, shadowed) for told, code in changes) if path]
        if len(changes) < 9 or len(files) < 4:
            sys.exit(f"{DOCUMENT}: {len(changes)} blocks of code, {len(files)} files (there were 9 and 4)")
        everything = shadowed / "everything.cpp"
        everything.write_text("".join(f'#include "{shadowed}/{path}"\n' for path in files))
        done = subprocess.run(compiler(sys.argv[1], shadowed) + [str(everything)], capture_output=True, text=True)
    print(done.stderr.replace(f"{shadowed}/", "") or f"{DOCUMENT}: {len(changes)} pieces of code compile")
    sys.exit(done.returncode != 0)


if __name__ == "__main__":
    main()
