#!/usr/bin/env python3
"""commands_test.py BUILD DOCUMENT: runs the marked commands of a document, as its reader would, in a folder of their own.

There the demo's model trains for a few steps only, and texts is a folder of JSON lines. `commands_test.py BUILD demo` runs a short
demo, and the first thing that it says to try next.
"""
import json
import os
import pathlib
import re
import shutil
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
    return [f"{document}, {complaint}" for block in blocks for complaint in commands.run(block, folder, environment, instead)]


def share_in_the_book(text):
    """The share of its words of three letters or more that the book has, whole percents."""
    def words(text):
        return re.findall(r"[a-z]{3,}", text.lower())
    book, said = set(words((ROOT / "data/alice.txt").read_text())), words(text)
    return 100 * sum(word in book for word in said) // len(said)


def complaints_of_demo(folder, environment):
    """The demo ends with a curve, a picture and a text; four ranks, as it says, have the bits of its one."""
    done = subprocess.run(["scripts/demo.sh", "build/mindpipe-train"], cwd=folder, env=dict(environment, DEMO_SECONDS="2"),
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=200)
    told = done.stdout
    if done.returncode != 0:
        return [f"the demo failed\n{told[-3000:]}"]
    share = share_in_the_book(pathlib.Path(folder, "runs/demo/text.txt").read_text(errors="replace"))
    wanted = [r"validation loss \d", r"training loss of \d+ steps", r" \|#", r"picture: runs/demo/loss\.svg", r"^Alice was ",
              rf"^{share} % of its words of three letters or more stand in the book$"]
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
        (folder / f"texts/{number}.jsonl").write_text(line + "\n")


def main():
    build, subject = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    environment = dict(os.environ, PATH=f"{build}:{os.environ['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1", LC_ALL="C",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1", OMP_NUM_THREADS="1",
                       OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                       OMPI_MCA_rmaps_base_oversubscribe="1")
    with tempfile.TemporaryDirectory() as folder:
        furnish(pathlib.Path(folder), build)
        complaints = complaints_of_demo(folder, environment) if subject == "demo" else \
            complaints_of_document(subject, folder, environment)
    print("\n".join(complaints) or f"{subject}: it does what it says")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
