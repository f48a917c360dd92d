#!/usr/bin/env python3
"""commands_test.py BUILD DOCUMENT: runs the marked commands of a document, as its reader would, in a folder of their own.

There the demo's model trains for a few steps only, that of the layouts too, and texts is a folder of packed JSON lines. Of README, the
commands for the reader's own text also train on four ranks. `commands_test.py BUILD demo` runs a short demo, and the first thing that it
says to try next.
"""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import commands

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A target builds what is built here already: its script is run, and the Makefile must name it.
TARGETS = {"make demo-layouts": ("scripts/demo_layouts.sh", "build/mindpipe-train build/tests/train_with_a_fault")}


def instead_of_targets():
    """The commands that take the place of targets in a build that is there."""
    instead = {}
    for target, (script, arguments) in TARGETS.items():
        recipe = (ROOT / "Makefile").read_text().split(target.removeprefix("make ") + ":", 2)[1].split("\n\n")[0]
        if script not in recipe:
            sys.exit(f"{target} does not run {script}")
        instead[target] = f"{script} {arguments}"
    return instead


def complaints_of_document(document, folder, environment):
    blocks = list(commands.blocks_of((ROOT / document).read_text()))
    if not blocks:
        return [f"{document} has no marked block"]
    instead = instead_of_targets()
    complaints = [f"{document}, {complaint}" for block in blocks for complaint in commands.run(block, folder, environment, instead)]
    if document == "README.md" and not complaints:
        complaints = complaints_of_own_text(blocks, pathlib.Path(folder), environment)
    return complaints


def complaints_of_own_text(blocks, folder, environment):
    """Of the three commands that make a model of a folder, the training and the text behind it once more, the training by mpirun as the
    block behind them has it: weights and text are those of the one rank that has run them, bit for bit."""
    own = next(block for block in blocks if "import texts" in block.commands[0])
    four = next(command for block in blocks for command in block.commands if command.startswith("mpirun -n 4 "))
    grid = " ".join(word for word in four.split() if word.startswith("grid."))
    if len(own.commands) != 3 or not grid:
        return ["README.md: a reader's own text takes other than three commands, or no four ranks are shown"]
    _, training, generation = own.commands
    script = "\n".join((f"{generation} >runs/mine.txt", f"mpirun -n 4 {training} {grid}".replace("runs/mine", "runs/mine-four"),
                        f"{generation} >runs/mine-four.txt".replace("runs/mine/", "runs/mine-four/")))
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", script], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=200)
    if done.returncode != 0:
        return [f"README.md: exit code {done.returncode}\n{script}\n{done.stdout[-3000:]}"]
    weights = [(folder / run / "model.safetensors").read_bytes() for run in ("runs/mine", "runs/mine-four")]
    texts = [(folder / (run + ".txt")).read_bytes() for run in ("runs/mine", "runs/mine-four")]
    return [f"README.md: four ranks have other {what} than one\n{done.stdout[-3000:]}"
            for what, files in (("weights", weights), ("texts", texts)) if len(set(files)) != 1]


def share_in_the_book(text):
    """The share of its words of three letters or more that the book has, whole percents."""
    def words(text):
        return re.findall(r"[a-z]{3,}", text.lower())
    book, said = set(words((ROOT / "data/alice.txt").read_text())), words(text)
    return 100 * sum(word in book for word in said) // len(said)


def complaints_of_demo(folder, environment):
    """The demo takes no more steps than its configuration says, however fast they are. It ends with a curve, a picture and a text; four
    ranks, as it says, have the bits of its one."""
    shorten(pathlib.Path(folder, "configs/demo.yaml"), [("steps", 4, 48)])
    done = subprocess.run(["scripts/demo.sh", "build/mindpipe-train"], cwd=folder, env=dict(environment, DEMO_SECONDS="60"),
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=200)
    told = done.stdout
    if done.returncode != 0:
        return [f"the demo failed\n{told[-3000:]}"]
    share = share_in_the_book(pathlib.Path(folder, "runs/demo/text.txt").read_text(errors="replace"))
    wanted = [r"^demo: 48 steps, about \d+ seconds", r"validation loss \d", r"training loss of 48 steps", r" \|#",
              r"picture: runs/demo/loss\.svg", r"^Alice was ", rf"^{share} % of its words of three letters or more stand in the book$"]
    complaints = [f"the demo does not say {line}\n{told[-3000:]}" for line in wanted if not re.search(line, told, re.M)]
    if not (pathlib.Path(folder) / "runs/demo/loss.svg").exists():
        complaints.append("there is no runs/demo/loss.svg")
    advice = told.split("Try next:\n")[-1].splitlines()
    if len(advice) != 3 or "the same bits on four ranks:" not in advice[0]:
        return complaints + [f"the demo says in {len(advice)} lines what to try"]
    tried = subprocess.run(["bash", "-eo", "pipefail", "-c", advice[0].split(":", 1)[1]], cwd=folder, env=environment, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=200)
    hashes = re.findall(r"^([0-9a-f]{64})  ", tried.stdout, re.M)
    if tried.returncode != 0 or len(hashes) != 2 or hashes[0] != hashes[1]:
        complaints.append(f"four ranks have other bits than the demo\n{tried.stdout[-3000:]}")
    return complaints


def shorten(configuration, numbers):
    """Puts a smaller number in place of some that a configuration has."""
    text = configuration.read_text()
    for key, usual, short in numbers:
        text, changes = re.subn(rf"^  {key}: {usual}\b", f"  {key}: {short}", text, flags=re.M)
        if changes != 1:
            sys.exit(f"{configuration.name} has another {key} than {usual}, which is cut short here")
    configuration.write_text(text)


def as_zstd(data):
    """A frame of zstd whose blocks hold the bytes as they are: neither a library nor a program makes it."""
    blocks = [data[at:at + 100_000] for at in range(0, len(data), 100_000)]
    heads = (struct.pack("<I", len(block) << 3 | (block is blocks[-1]))[:3] for block in blocks)
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + b"".join(map(b"".join, zip(heads, blocks)))


def furnish(folder, build):
    """What a reader's folder has, with a demo's configuration of a few steps and a text of the reader's own."""
    os.symlink(ROOT / "data", folder / "data")
    os.symlink(build, folder / "build")
    for room in ("configs", "scripts"):  # scripts go to the folder above their own
        shutil.copytree(ROOT / room, folder / room)
    shorten(folder / "configs/demo.yaml", (("steps", 1000, 4), ("evaluate_batches", 16, 1), ("tokens", 400, 100)))
    shorten(folder / "configs/supernet-tiny.yaml", (("steps", 320, 16), ("evaluate_every", 160, 16)))
    (folder / "texts").mkdir()
    for number, document in enumerate(("README.md", "docs/tutorial.md")):
        line = json.dumps({"text": (ROOT / document).read_text()})
        (folder / f"texts/{number}.jsonl.zst").write_bytes(as_zstd(line.encode() + b"\n"))


def main():
    build, subject = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    environment = dict(os.environ, PATH=f"{build}:{os.environ['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1", LC_ALL="C",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1", OMP_NUM_THREADS="1",
                       OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                       OMPI_MCA_rmaps_base_oversubscribe="1", STEPS="10", FAULT="175")  # of make demo-layouts
    with tempfile.TemporaryDirectory() as folder:
        furnish(pathlib.Path(folder), build)
        complaints = complaints_of_demo(folder, environment) if subject == "demo" else \
            complaints_of_document(subject, folder, environment)
    print("\n".join(complaints) or f"{subject}: it does what it says")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
