#!/usr/bin/env python3
"""commands_test.py BUILD DOCUMENT: runs the marked commands of a document, as its reader would, in a folder of their own."""
import os
import pathlib
import sys
import tempfile

import commands

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A target builds what is built here already: its script is run, and the Makefile must name it.
TARGETS = {"make demo-layouts": ("scripts/demo_layouts.sh", "build/mindpipe-train build/tests/train_with_a_fault")}


def main():
    build, document = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    instead = {}
    for target, (script, arguments) in TARGETS.items():
        recipe = (ROOT / "Makefile").read_text().split(target.removeprefix("make ") + ":", 2)[1].split("\n\n")[0]
        if script not in recipe:
            sys.exit(f"{target} does not run {script}")
        instead[target] = f"{script} {arguments}"
    blocks = list(commands.blocks_of((ROOT / document).read_text()))
    if not blocks:
        sys.exit(f"{document} has no marked block")
    environment = dict(os.environ, PATH=f"{build}:{os.environ['PATH']}", OMPI_ALLOW_RUN_AS_ROOT="1", LC_ALL="C",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1", OMP_NUM_THREADS="1",
                       OMPI_MCA_hwloc_base_binding_policy="none", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        for room in ("configs", "data"):
            os.symlink(ROOT / room, f"{folder}/{room}")
        os.mkdir(f"{folder}/scripts")
        for script, _ in TARGETS.values():  # they go to the folder above their own
            (pathlib.Path(folder) / script).write_bytes((ROOT / script).read_bytes())
            (pathlib.Path(folder) / script).chmod(0o755)
        os.symlink(build, f"{folder}/build")
        for block in blocks:
            complaints += [f"{document}, {complaint}" for complaint in commands.run(block, folder, environment, instead)]
    print("\n".join(complaints) or f"{document}: {len(blocks)} blocks do what they show")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
