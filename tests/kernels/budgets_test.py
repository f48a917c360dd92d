#!/usr/bin/env python3
"""budgets_test.py BUILD: the kernels keep to the budgets of kernels/cuda/device, and mistakes are found: launch bounds that
make a kernel spill, a kernel with fewer warps, accesses of single elements. Exit code 77: no nvcc here.

What the build has compiled is taken from its objects. A mistake is made in a copy of one short file, for one architecture.
"""
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import kernel_budgets  # noqa: E402

KNOWN = kernel_budgets.stated((ROOT / "kernels/cuda/device/budgets.tsv").read_text())


def complaints_of(changes, only):
    """What is said of one file after changes: (file, what stood there, what stands there instead)."""
    with tempfile.TemporaryDirectory() as room:
        sources = pathlib.Path(room, "kernels")
        shutil.copytree(ROOT / "kernels", sources)
        for file, before, after in changes:
            path = sources / "cuda/device" / file
            text = path.read_text()
            assert before in text, "%s has no %s" % (file, before)
            path.write_text(text.replace(before, after))
        choice = kernel_budgets.options(["--sources", str(sources), "--only", only, "--architectures", "80", "--check"])
        return kernel_budgets.complaints(kernel_budgets.all_budgets(choice), KNOWN, choice)


def expect(found, kernel, complaint):
    assert any(line.startswith(kernel) and complaint in line for line in found), "%s: %s" % (kernel, found)


def mistakes_are_found():
    spills = ("attention_f64.cu", "void key_rows(", "void __launch_bounds__(256, 4) key_rows(")
    fewer = ("classifier.cu", "void loss_rows(", "void __launch_bounds__(768) loss_rows(")
    single = ("group.h", "using Piece = PieceOf<static_cast<int>(size * sizeof(T))>;", "using Piece = T;")
    found = complaints_of([spills], "attention_f64.cu")
    expect(found, "key_rows on sm_80", "spills")
    assert len(found) == 1, found
    found = complaints_of([fewer, single], "classifier.cu")
    expect(found, "loss_rows<float> on sm_80", "has 48 resident warps, and budgets.tsv states 64")
    expect(found, "maximum_rows<float> on sm_80", "widest load of 4 bytes")


code = kernel_budgets.main(["--check", "--objects", sys.argv[1]])
if code:
    sys.exit(code)
mistakes_are_found()
print("within budget, and three mistakes found")
