#!/usr/bin/env python3
"""budgets_test.py: the kernels keep to the budgets of kernels/cuda/device/README.md, and mistakes are found: launch
bounds that make a kernel spill, a kernel with fewer warps, accesses of single elements. Exit code 77: no nvcc here."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def check(*options):
    done = subprocess.run([
        sys.executable, ROOT / "scripts/kernel_budgets.py", "--check", "--architectures", "80", "90",
        *map(str, options)
    ],
                          capture_output=True,
                          text=True)
    return done.returncode, done.stdout + done.stderr


def mutated(file, before, after):
    """The check of one file in which something is changed."""
    with tempfile.TemporaryDirectory() as room:
        sources = pathlib.Path(room, "kernels")
        shutil.copytree(ROOT / "kernels", sources)
        path = sources / "cuda/device" / file
        text = path.read_text()
        assert before in text, "%s has no %s" % (file, before)
        path.write_text(text.replace(before, after))
        return check("--sources", sources, "--only", file)


code, text = check()
if code == 77:
    print(text)
    sys.exit(77)
assert code == 0, text
mistakes = [
    ("norm.cu", "__launch_bounds__(most_threads) norm_gradient_rows",
     "__launch_bounds__(most_threads, 4) norm_gradient_rows", "norm_gradient_rows<", "spills"),
    ("update.cu", "__launch_bounds__(group_threads)", "__launch_bounds__(1024)", "adamw_groups",
     "resident warps"),
]
for file, before, after, kernel, complaint in mistakes:
    code, text = mutated(file, before, after)
    assert code == 1 and any(kernel in line and complaint in line
                             for line in text.splitlines()), "%s: %d, %s" % (after, code, text)
print("within budget, and two mistakes found")
