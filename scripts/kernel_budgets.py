#!/usr/bin/env python3
"""What the compiler makes of the GPU's kernels: registers, spilled bytes, shared memory, resident warps, width of loads and stores.

kernel_budgets.py [--sources DIR] [--objects DIR] [--architectures 80 90 100 120] [--only FILE.cu ...] --print | --write | --check
  --print    the table of the worst instance of each kernel on standard output
  --write    puts every instance into kernels/cuda/device/budgets.tsv and that table into the README beside it
  --check    exits 1 where an instance of a kernel spills more than budgets.tsv says or MAY_SPILL allows, has fewer resident
             warps, moves memory in narrower pieces, or is not in budgets.tsv; and where the README's table is not that of
             budgets.tsv (77: no nvcc here)
  --objects  a folder of the build: PTX that it has compiled, for whatever architecture, is not compiled again
"""
import argparse
import collections
import concurrent.futures
import ctypes
import ctypes.util
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- budgets: scripts/kernel_budgets.py --write -->", "<!-- end of budgets -->"
# Bytes that one instance's code may store and load of spilled registers on one architecture, and why.
F64_LOGITS = "f64 logits, for gradient checks only: four groups in flight take more registers than 512 threads leave"
HITS = "ptxas keeps to 40 registers for all 48 warps of a multiprocessor; hits are counted once a batch, in one block"
OWN_F32 = "our own attention in f32, which runs where no library does: ptxas keeps to 80 registers for one block more"
ODD_ROWS = "rows that are no whole groups: single elements of two or three operands beside sums of columns, 128 registers a thread"
MAY_SPILL = {
    ("sum_rows<double>", 90): (96, F64_LOGITS),
    ("sum_rows<double>", 100): (96, F64_LOGITS),
    ("add_hits<float>", 120): (72, HITS),
    ("add_hits<double>", 120): (72, HITS),
    ("key_kernel<float, 64>", 100): (40, OWN_F32),
    ("query_kernel<float, 64>", 120): (32, OWN_F32),
    ("query_kernel<float, 128>", 120): (52, OWN_F32),
    ("query_kernel<unsigned short, 256>", 120):
        (20, "heads wider than 128 by our own attention, which serves what cuDNN refuses"),
    ("norm_rows<bf16, false, SummedRows<bf16> >", 80):
        (12, "rows that are odd or longer than 16,384, which are read again: one word, stored once and loaded twice"),
    ("norm_backward_chunks<bf16, false, false>", 80): (8, ODD_ROWS),
    ("norm_backward_chunks<bf16, false, false>", 120): (12, ODD_ROWS),
    ("norm_backward_chunks<bf16, false, true>", 80): (148, ODD_ROWS),
    ("norm_backward_chunks<bf16, false, true>", 90): (128, ODD_ROWS),
    ("norm_backward_chunks<bf16, false, true>", 100): (128, ODD_ROWS),
    ("norm_backward_chunks<bf16, false, true>", 120): (140, ODD_ROWS),
    ("cross_entropy_rows<double, false>", 90): (16, "f64 logits, for gradient checks only"),
    ("cross_entropy_rows<double, false>", 100): (16, "f64 logits, for gradient checks only"),
    ("cross_entropy_rows<double, false>", 120): (16, "f64 logits, for gradient checks only"),
    ("forward_kernel<unsigned short, 256>", 80):
        (52, "heads wider than 128 by our own attention, which serves what cuDNN refuses: some words of a tile's sums"),
}
# Kernels that start without launch bounds run as many threads a block as their file says.
THREADS_WITHOUT_BOUNDS = 256
# Of a multiprocessor: registers, and what each block has of shared memory beside its own; warps, blocks and shared memory.
REGISTERS, RESERVED = 65536, 1024
ROOM = {80: (64, 32, 164 * 1024), 90: (64, 32, 228 * 1024), 100: (64, 32, 228 * 1024), 120: (48, 24, 100 * 1024)}
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
ENTRY = r"(?=^(?:\.visible |\.weak )?\.entry )"
FIGURES = ("threads", "registers", "spilled", "shared", "warps", "load", "store")
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
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "tiles.cpp")
        source.write_text(TILES)
        run("g++", "-std=c++20", "-w", "-I%s" % (ROOT / "src"), "-I%s" % (ROOT / "tests/kernels/cuda_on_host"),
            "-I%s" % sources, str(source), "-o", folder + "/tiles")
        sizes = {}
        for line in run(folder + "/tiles").splitlines():
            *kind, width, forward, backward = line.split()
            kind = " ".join(kind)
            sizes["forward_kernel<%s, %s>" % (kind, width)] = int(forward)
            for name in ("query_kernel", "key_kernel"):
                sizes["%s<%s, %s>" % (name, kind, width)] = int(backward)
    return sizes


def held_row(sources, architecture):
    """Bytes of the longest row of logits that a block holds, beside what a kernel keeps for itself."""
    beside = re.search(r"beside_held_row = (\d+)", (sources / "operations/classifier.h").read_text())
    return ROOM[architecture][2] - RESERVED - int(beside.group(1))


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
    most_warps, most_blocks, most_shared = ROOM[architecture]
    blocks = min(most_blocks, most_warps // warps, REGISTERS // (per_warp * warps),
                 most_shared // (shared + RESERVED))
    return blocks * warps


def zstd_frames(data):
    """What is packed in an object, as nvcc packs for size; nothing where this machine has no libzstd."""
    try:
        library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    except OSError:
        return
    for name in ("ZSTD_getFrameContentSize", "ZSTD_findFrameCompressedSize", "ZSTD_decompress"):
        getattr(library, name).restype = ctypes.c_size_t
    at = -1
    while (at := data.find(b"\x28\xb5\x2f\xfd", at + 1)) >= 0:
        packed = data[at:]
        size = library.ZSTD_getFrameContentSize(packed, ctypes.c_size_t(len(packed)))
        length = library.ZSTD_findFrameCompressedSize(packed, ctypes.c_size_t(len(packed)))
        if size > 1 << 30 or length > len(packed):
            continue  # no frame: these bytes came by chance
        unpacked = ctypes.create_string_buffer(size)
        if library.ZSTD_decompress(unpacked, ctypes.c_size_t(size), packed, ctypes.c_size_t(length)) == size:
            yield unpacked.raw


def unit_of(objects, file):
    """The file that a build compiles: this one, or one that it has written to include several."""
    units = objects.rglob("generated/cuda/*.cu")
    return next((unit.name for unit in units if '/%s"' % file.name in unit.read_text()), file.name)


def own_kernels(text, file):
    """PTX without the kernels of other files that were compiled with this one; functions that kernels call stay."""
    own = set(re.findall(r"__global__ void (?:__launch_bounds__\([^)]*\)\s*)?(\w+)", file.read_text()))
    kept = ""
    for part in re.split(r"(?=^(?:\.visible |\.weak )?\.(?:entry|func)\b)", text, flags=re.M):
        kernel = re.match(r"[.a-z ]*\.entry (\w+)", part)
        kept += part if not kernel or short_name(run("c++filt", kernel[1])).split("<")[0] in own else ""
    return kept


@functools.lru_cache(maxsize=None)
def built_ptx(objects, file):
    """The PTX in the build's object of a file, for whatever architecture; nothing where none is found."""
    for built in sorted(objects.rglob(unit_of(objects, file) + ".o")) if objects else ():
        for frame in zstd_frames(built.read_bytes()):
            text = frame.rstrip(b"\0")
            if b".version" in text[:100] and b".entry" in text:
                return own_kernels(text.decode(), file)
    return ""


def asks_for_architecture(sources):
    """Whether a kernel's code depends on what it is compiled for; if not, PTX differs in one line only."""
    return any(re.search(r"__CUDA_ARCH\w*__\s*[<>=!&|]", path.read_text()) for path in (sources / "cuda").rglob("*.*"))


def ptx_of(sources, objects, file, architecture):
    """PTX for an architecture: that of the build, or what is compiled here, once for all of them where it is the same."""
    if asks_for_architecture(sources):
        return compiled_ptx(sources, file, architecture)
    text = built_ptx(objects, file) or compiled_ptx(sources, file, min(ROOM))
    return re.sub(r"^\.target sm_\d+", ".target sm_%d" % architecture, text, flags=re.M)


@functools.lru_cache(maxsize=None)
def compiled_ptx(sources, file, architecture):
    with tempfile.TemporaryDirectory() as folder:
        ptx = folder + "/kernels.ptx"
        run(NVCC, "-I%s" % (ROOT / "src"), "-I%s" % sources, "-O3", "-fmad=false", "-std=c++20",
            "-DFMT_USE_CONSTEXPR=1",
            "-arch=compute_%d" % architecture, "-ptx", str(file), "-o", ptx)
        return pathlib.Path(ptx).read_text()


def compiled(sources, objects, file, architecture, sizes):
    """name -> figures, of all kernels of a file."""
    text = ptx_of(sources, objects, file, architecture)
    with tempfile.TemporaryDirectory() as folder:
        ptx = folder + "/kernels.ptx"
        pathlib.Path(ptx).write_text(text)
        done = subprocess.run(
            [PTXAS, "-v", "-arch=sm_%d" % architecture, ptx, "-o", folder + "/out"],
            check=True,
            capture_output=True,
            text=True)
    figures = {}
    bodies = {}
    for part in re.split(ENTRY, text, flags=re.M)[1:]:
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
        if re.fullmatch(r"cross_entropy_rows<\w+, true>", name):
            shared += held_row(sources, architecture)
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


def all_budgets(choice):
    """(file, instance) -> architecture -> figures."""
    files = [file for file in sorted((choice.sources / "cuda/device").glob("*.cu"))
             if not choice.only or file.name in choice.only]
    jobs = [(file, architecture) for file in files for architecture in choice.architectures]
    jobs.sort(key=lambda job: -job[0].stat().st_size)  # the long ones first, so that two processors end together
    sizes = dynamic_shared(choice.sources) if any("flash" in file.name for file in files) else {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda job: compiled(choice.sources, choice.objects, *job, sizes), jobs))
    budgets = collections.defaultdict(dict)
    for (file, architecture), figures in zip(jobs, results):
        for name, one in figures.items():
            budgets[file.name, name][architecture] = one
    return budgets


def types_of(instance):
    """"bf16, true" of an instance's name."""
    text = instance.partition("<")[2].rpartition(">")[0]
    for name, short in (("unsigned short", "bf16"), ("float", "f32"), ("double", "f64"), ("unsigned int", "u32")):
        text = re.sub(r"\b%s\b" % name, short, text)
    return text.strip()


def row_of(kernel, instances):
    """The worst of all instances: a line of the table."""
    architectures = sorted({architecture for one in instances.values() for architecture in one})

    def by_architecture(values):
        return str(values[0]) if len(set(values)) == 1 else " / ".join(map(str, values))

    def each(key, choose):
        return by_architecture([choose(one[a][key] for one in instances.values() if a in one) for a in architectures])

    def spilled(architecture):
        """The bytes, and by which instance where there are several."""
        most, name = max((one[architecture]["spilled"], name) for name, one in instances.items() if architecture in one)
        return "%d by `%s`" % (most, types_of(name)) if most and len(instances) > 1 else str(most)

    def worst(architecture):
        names = [name for name, one in instances.items() if architecture in one]
        return types_of(min(names, key=lambda name: (instances[name][architecture]["warps"],
                                                     -instances[name][architecture]["registers"], name)))

    named = list(dict.fromkeys(worst(architecture) for architecture in architectures))
    return "| `%s` | %d | %s | %s | %s | %s | %s | %s, %s | %s |" % (
        kernel, len(instances), each("threads", max), each("registers", max),
        by_architecture([spilled(architecture) for architecture in architectures]), each("shared", max),
        each("warps", min), each("load", min), each("store", min),
        " / ".join("`%s`" % one for one in named if one))


def table(budgets):
    lines = [
        "| kernel | instances | threads | registers | spilled | shared | warps | load, store | fewest warps |",
        "|---|---|---|---|---|---|---|---|---|"
    ]
    files = collections.defaultdict(lambda: collections.defaultdict(dict))
    for (file, name), one in budgets.items():
        files[file][name.split("<")[0]][name] = one
    for file in sorted(files):
        lines.append("| **%s** | | | | | | | | |" % file)
        lines += [row_of(kernel, files[file][kernel]) for kernel in sorted(files[file])]
    return "\n".join(lines)


def written(budgets):
    """The text of budgets.tsv: a line for each instance and architecture."""
    lines = ["\t".join(("file", "instance", "sm") + FIGURES)]
    for (file, name), by_architecture in sorted(budgets.items()):
        for architecture, one in sorted(by_architecture.items()):
            lines.append("\t".join(map(str, (file, name, architecture, *(one[key] for key in FIGURES)))))
    return "\n".join(lines) + "\n"


def stated(text):
    """What budgets.tsv says, in the form of all_budgets."""
    budgets = collections.defaultdict(dict)
    for line in text.splitlines()[1:]:
        file, name, architecture, *figures = line.split("\t")
        budgets[file, name][int(architecture)] = dict(zip(FIGURES, map(int, figures)))
    return budgets


def complaints(budgets, stated_budgets, choice):
    found = []
    for (file, name), by_architecture in budgets.items():
        for architecture, one in by_architecture.items():
            instance = "%s on sm_%d" % (name, architecture)
            wanted = stated_budgets.get((file, name), {}).get(architecture)
            if wanted is None:
                found.append("%s is not in budgets.tsv: run scripts/kernel_budgets.py --write" % instance)
                continue
            if one["spilled"] > min(wanted["spilled"], MAY_SPILL.get((name, architecture), (0, ""))[0]):
                found.append("%s spills %d bytes" % (instance, one["spilled"]))
            if one["warps"] < wanted["warps"]:
                found.append("%s has %d resident warps, and budgets.tsv states %d" %
                             (instance, one["warps"], wanted["warps"]))
            for key in ("load", "store"):
                if one[key] < wanted[key]:
                    found.append("%s has a widest %s of %d bytes, and budgets.tsv states %d" %
                                 (instance, key, one[key], wanted[key]))
    if not choice.only:
        found += ["%s of %s is in budgets.tsv and no more in the code: run scripts/kernel_budgets.py --write" % (name, file)
                  for file, name in stated_budgets if (file, name) not in budgets]
    return found


def table_of_readme(readme):
    return readme.read_text().split(BEGIN)[1].split(END)[0].strip()


def options(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", type=pathlib.Path, default=ROOT / "kernels")
    parser.add_argument("--objects", type=pathlib.Path)
    parser.add_argument("--architectures", type=int, nargs="+", default=sorted(ROOM))
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args(words)


def main(words):
    choice = options(words)
    if not NVCC or not PTXAS:
        print("kernel_budgets.py: skipped: no nvcc here")
        return 77
    readme, every = ROOT / "kernels/cuda/device/README.md", ROOT / "kernels/cuda/device/budgets.tsv"
    budgets = all_budgets(choice)
    if choice.print:
        print(table(budgets))
    if choice.write:
        before, rest = readme.read_text().split(BEGIN)
        readme.write_text(before + BEGIN + "\n" + table(budgets) + "\n" + END + rest.split(END)[1])
        every.write_text(written(budgets))
    found = []
    if choice.check:
        known = stated(every.read_text())
        found = complaints(budgets, known, choice)
        if table_of_readme(readme) != table(known):
            found.append("the table in %s is not that of budgets.tsv: run scripts/kernel_budgets.py --write" % readme)
    for complaint in found:
        print("kernel_budgets.py: " + complaint)
    return 1 if found else 0


PATHS = "%s:/usr/local/cuda/bin" % os.environ.get("PATH", "")
NVCC, PTXAS = (shutil.which(tool, path=PATHS) for tool in ("nvcc", "ptxas"))
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
