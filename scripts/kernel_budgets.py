#!/usr/bin/env python3
"""What the compiler makes of the GPU's kernels: registers, spilled bytes, shared memory, resident warps, width of loads and stores.

kernel_budgets.py [--sources DIR] [--architectures 80 90] [--only FILE.cu ...] --print | --write | --check
  --print   the table on standard output
  --write   puts the table into kernels/cuda/device/README.md
  --check   exits 1 where a kernel spills that is not in MAY_SPILL, has fewer resident warps than the table states,
            moves memory in narrower pieces, or is not in the table (77: no nvcc here)
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- budgets: scripts/kernel_budgets.py --write -->", "<!-- end of budgets -->"
MAY_SPILL = {  # bytes, and why
    "sum_rows": (96, "f64 logits, for gradient checks only: four groups in flight take more registers than 512 threads leave"),
    "norm_rows": (12, "sm_80 only: three words, beside the rows of 16,384 that stay in registers"),
    "forward_kernel": (52, "sm_80 only, by our own attention, which serves what cuDNN refuses: some words of a tile's sums"),
}
# Kernels that start without launch bounds run as many threads a block as their file says.
THREADS_WITHOUT_BOUNDS = 256
# Of a multiprocessor: registers, warps, blocks, shared memory, and what each block has of that beside its own.
REGISTERS, WARPS, BLOCKS, RESERVED = 65536, 64, 32, 1024
SHARED = {80: 164 * 1024, 90: 228 * 1024}
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
TILES = """
#include <cstdio>
#include "cuda/device/flash_backward.h"
#include "cuda/device/flash_forward.h"
using namespace mindpipe::cuda::flash;
template <class T, int width> void print(const char* type) {
  constexpr int rows = tile_rows<T, width>;
  std::printf("%s %d %zu %zu\\n", type, width, sizeof(ForwardTiles<T, rows, width>), sizeof(BackwardTiles<T, rows, width>));
}
template <class T> void print(const char* type) { print<T, 64>(type); print<T, 128>(type); print<T, 256>(type); }
int main() { print<Bf16>("unsigned short"); print<float>("float"); }
"""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def dynamic_shared(sources):
    """Bytes that a block of our own attention works in, by kernel, type and width: what its start asks for."""
    with tempfile.TemporaryDirectory() as room:
        source = pathlib.Path(room, "tiles.cpp")
        source.write_text(TILES)
        run("g++", "-std=c++20", "-w", "-I%s" % (ROOT / "src"), "-I%s" % sources, str(source), "-o",
            room + "/tiles")
        sizes = {}
        for line in run(room + "/tiles").splitlines():
            *kind, width, forward, backward = line.split()
            kind = " ".join(kind)
            sizes["forward_kernel<%s, %s>" % (kind, width)] = int(forward)
            for name in ("query_kernel", "key_kernel"):
                sizes["%s<%s, %s>" % (name, kind, width)] = int(backward)
    return sizes


def short_name(demangled):
    """"norm_rows<bf16, true>" of a whole signature."""
    depth, name = 0, ""
    text = demangled.replace("(anonymous namespace)::", "")
    for character in text:
        if character == "(" and depth == 0:
            break
        depth += (character == "<") - (character == ">")
        name += character
    name = re.sub(r"\b(mindpipe|cuda|flash|f64)::", "", name)
    return name[5:] if name.startswith("void ") else name


def widest(body, instruction):
    """Bytes of the widest access to global memory."""
    most = 0
    for vector, bits in re.findall(instruction + r"\.global(?:\.[a-z]+)*(\.v[24])?\.[a-z]*?(8|16|32|64)\b",
                                   body):
        most = max(most, BYTES[bits] * int(vector[2:] or 1))
    return most


def resident_warps(architecture, registers, threads, shared):
    warps = -(-threads // 32)
    per_warp = -(-registers * 32 // 256) * 256
    blocks = min(BLOCKS, WARPS // warps, REGISTERS // (per_warp * warps),
                 SHARED[architecture] // (shared + RESERVED))
    return blocks * warps


def compiled(sources, file, architecture, sizes):
    """name -> figures, of all kernels of a file."""
    with tempfile.TemporaryDirectory() as room:
        ptx = room + "/kernels.ptx"
        run(NVCC, "-I%s" % (ROOT / "src"), "-I%s" % sources, "-O3", "-fmad=false", "-std=c++20",
            "-DFMT_USE_CONSTEXPR=1",
            "-arch=compute_%d" % architecture, "-ptx", str(file), "-o", ptx)
        done = subprocess.run(
            [PTXAS, "-v", "-arch=sm_%d" % architecture, ptx, "-o", room + "/out"],
            check=True,
            capture_output=True,
            text=True)
        text = pathlib.Path(ptx).read_text()
    figures = {}
    bodies = {}
    for part in re.split(r"(?=^(?:\.visible |\.weak )?\.entry )", text, flags=re.M)[1:]:
        bodies[re.search(r"\.entry (\w+)", part).group(1)] = part
    demangled = dict(zip(bodies, run("c++filt", *bodies).splitlines())) if bodies else {}
    for block in re.split(r"Compiling entry function '", done.stderr)[1:]:
        mangled = block.split("'")[0]
        body, name = bodies[mangled], short_name(demangled[mangled])
        bound = re.search(r"\.maxntid (\d+)", body)
        threads = int(bound.group(1)) if bound else THREADS_WITHOUT_BOUNDS
        registers = int(re.search(r"Used (\d+) registers", block).group(1))
        spilled = sum(int(count) for count in re.findall(r"(\d+) bytes spill", block))
        static = re.search(r"(\d+) bytes smem", block)
        shared = (int(static.group(1)) if static else 0) + sizes.get(name, 0)
        if ".extern .shared" in text and "shared" in body and name.split("<")[0] in (
                "forward_kernel", "query_kernel", "key_kernel") and name not in sizes:
            raise KeyError("the size of %s's shared memory is not known" % name)
        figures[name] = {
            "registers": registers,
            "spilled": spilled,
            "shared": shared,
            "threads": threads,
            "warps": resident_warps(architecture, registers, threads, shared),
            "load": widest(body, "ld"),
            "store": widest(body, "st")
        }
    return figures


def all_budgets(sources, architectures, only):
    sizes = dynamic_shared(sources)
    files = [file for file in sorted((sources / "cuda/device").glob("*.cu")) if not only or file.name in only]
    jobs = [(file, architecture) for file in files for architecture in architectures]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda job: compiled(sources, job[0], job[1], sizes), jobs))
    budgets = {}
    for (file, architecture), figures in zip(jobs, results):
        for name, one in figures.items():
            budgets.setdefault((file.name, name.split("<")[0]), {}).setdefault(architecture, []).append(
                (name, one))
    return budgets


def row_of(kernel, by_architecture):
    """The worst of all types: a line of the table."""

    def each(key, choose):
        values = [choose(one[key] for _, one in by_architecture[a]) for a in sorted(by_architecture)]
        return str(values[0]) if len(set(values)) == 1 else " / ".join(map(str, values))

    instances = by_architecture[max(by_architecture)]
    return "| `%s` | %d | %s | %s | %s | %s | %s | %s, %s |" % (kernel[1], len(instances), each(
        "threads", max), each("registers", max), each("spilled", max), each("shared", max), each(
            "warps", min), each("load", max), each("store", max))


def table(budgets):
    lines = [
        "| kernel | types | threads | registers | spilled | shared | warps | widest load, store |",
        "|---|---|---|---|---|---|---|---|"
    ]
    file = ""
    for kernel in sorted(budgets):
        if kernel[0] != file:
            file = kernel[0]
            lines.append("| **%s** | | | | | | | |" % file)
        lines.append(row_of(kernel, budgets[kernel]))
    return "\n".join(lines)


def stated(readme):
    """kernel -> (warps by architecture, load, store), from the table."""
    rows = {}
    text = readme.read_text().split(BEGIN)[1].split(END)[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not cells[0].startswith("`"):
            continue
        numbers = [int(part) for part in cells[6].split("/")]
        widths = [min(int(part) for part in cell.split("/")) for cell in cells[7].split(",")]
        rows[cells[0].strip("`")] = ({80: numbers[0], 90: numbers[-1]}, *widths)
    return rows


def complaints(budgets, rows):
    found = []
    for (_, kernel), by_architecture in budgets.items():
        if kernel not in rows:
            found.append("%s is not in the table: run scripts/kernel_budgets.py --write" % kernel)
            continue
        warps, load, store = rows[kernel]
        for architecture, instances in by_architecture.items():
            for name, one in instances:
                if one["spilled"] > MAY_SPILL.get(kernel, (0, ""))[0]:
                    found.append("%s spills %d bytes on sm_%d" % (name, one["spilled"], architecture))
                if one["warps"] < warps[architecture]:
                    found.append("%s has %d resident warps on sm_%d, and the table states %d" %
                                 (name, one["warps"], architecture, warps[architecture]))
            for width, key in ((load, "load"), (store, "store")):
                if max(one[key] for _, one in instances) < width:
                    found.append("%s's widest %s is below the %d bytes that the table states" %
                                 (kernel, key, width))
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", type=pathlib.Path, default=ROOT / "kernels")
    parser.add_argument("--architectures", type=int, nargs="+", default=[80, 90])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    choice = parser.parse_args()
    if not NVCC or not PTXAS:
        print("kernel_budgets.py: skipped: no nvcc here")
        return 77
    budgets = all_budgets(choice.sources, choice.architectures, choice.only)
    readme = ROOT / "kernels/cuda/device/README.md"
    if choice.print:
        print(table(budgets))
    if choice.write:
        text = readme.read_text()
        before, rest = text.split(BEGIN)
        readme.write_text(before + BEGIN + "\n" + table(budgets) + "\n" + END + rest.split(END)[1])
    found = complaints(budgets, stated(readme)) if choice.check else []
    for complaint in found:
        print("kernel_budgets.py: " + complaint)
    return 1 if found else 0


PATHS = "%s:/usr/local/cuda/bin" % os.environ.get("PATH", "")
NVCC, PTXAS = shutil.which("nvcc", path=PATHS), shutil.which("ptxas", path=PATHS)
if __name__ == "__main__":
    sys.exit(main())
