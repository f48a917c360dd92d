#!/usr/bin/env python3
# thorough
"""budgets_test.py BUILD: the kernels keep to the budgets of kernels/cuda/device, and mistakes are found: launch bounds that
make a kernel spill, a kernel with fewer warps, accesses of single elements, allowances that no instance needs. A row of the
table has the worst of every figure. Exit code 77: no nvcc here. That all of this holds is kept, and found again where the compiler, the
kernels, the budgets and these scripts are the same.

What the build has compiled is taken from its objects. A mistake is made in a copy of one short file, for one architecture.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]
sys.dont_write_bytecode = True
import kept_answers  # noqa: E402
import kernel_budgets  # noqa: E402

KNOWN = kernel_budgets.stated((ROOT / "kernels/cuda/device/budgets.tsv").read_text())


def complaints_of(changes, only):
    """What is said of one file after changes: (file, what stood there, what stands there instead)."""
    with tempfile.TemporaryDirectory() as folder:
        sources = pathlib.Path(folder, "kernels")
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


def figures(warps=64, spilled=0, load=16, store=16):
    return {"threads": 256, "registers": 32, "spilled": spilled, "shared": 0, "warps": warps, "load": load, "store": store}


def a_row_has_the_worst_of_every_figure():
    row = kernel_budgets.row_of("sums", {"sums<float, true>": {80: figures(warps=48), 90: figures()},
                                         "sums<float, false>": {80: figures(spilled=12, load=4), 90: figures(store=2)}})
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells == ["`sums`", "2", "256", "32", "12 by `f32, false` / 0", "0", "48 / 64", "4 / 16, 16 / 2",
                     "`f32, true` / `f32, false`"], cells
    narrow = [one for one in KNOWN if one[1].startswith("norm_rows<")]
    least = min(KNOWN[one][80]["load"] for one in narrow)
    table = kernel_budgets.table_of_readme(ROOT / "kernels/cuda/device/README.md")
    row = next(line for line in table.splitlines() if line.startswith("| `norm_rows`"))
    assert least < max(KNOWN[one][80]["load"] for one in narrow) and "| %d, " % least in row, row


def an_allowance_names_the_instance_that_spills():
    choice = kernel_budgets.options(["--only", "norm.cu", "--check"])
    for (name, architecture), (allowed, _) in kernel_budgets.MAY_SPILL.items():
        spilled = [one[architecture]["spilled"] for (_, instance), one in KNOWN.items() if instance == name]
        assert spilled == [allowed], "%s on sm_%d: %s" % (name, architecture, spilled)
        others = [(name, at) for at in kernel_budgets.ROOM if (name, at) not in kernel_budgets.MAY_SPILL]
        for instance, at in ((name, architecture), (name.replace("<", "<int, "), architecture), *others):
            one = {("norm.cu", instance): {at: figures(spilled=allowed)}}
            found = kernel_budgets.complaints(one, one, choice)
            assert bool(found) == ((instance, at) != (name, architecture)), found


def key_of_all():
    """What all of it follows from; nothing where there is no compiler to name."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not pathlib.Path(nvcc).exists():
        return None
    asked = [ROOT / "scripts/kernel_budgets.py", pathlib.Path(__file__), *filter(pathlib.Path.is_file, (ROOT / "kernels").rglob("*"))]
    cache = pathlib.Path(sys.argv[1], "CMakeCache.txt").read_text()
    flags = [line for line in cache.splitlines() if "CUDA_ARCHITECTURES" in line or "CMAKE_CUDA_FLAGS" in line]
    return kept_answers.key_of([subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout, *flags], b"budgets", asked)


def holds_as_before(key, said):
    return key is not None and kept_answers.take(key, said)


def main():
    a_row_has_the_worst_of_every_figure()
    an_allowance_names_the_instance_that_spills()
    with tempfile.TemporaryDirectory() as folder:
        key, said = key_of_all(), pathlib.Path(folder, "said")
        if holds_as_before(key, said):
            print(said.read_text() + ", as this compiler found before of the same kernels")
            return 0
        code = kernel_budgets.main(["--check", "--objects", sys.argv[1]])
        if code:
            return code
        mistakes_are_found()
        said.write_text("within budget, and three mistakes found")
        print(said.read_text())
        if key is not None:
            kept_answers.keep(key, said)
    return 0


sys.exit(main())
