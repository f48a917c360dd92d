#!/usr/bin/env python3
# thorough
"""size_test.py BUILD: the bundle of gpu-check and the tree are at most 56 MiB together with device code for all GPUs that `make
gpu-check` compiles for, and a larger one is refused. What this build has no code for is made here of its PTX, by nvcc, and counted
once: programs share their code, and the bundle's packing finds it once, which is looked at too. Exit code 77: no nvcc here."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import kernel_budgets  # noqa: E402

MOST_MIB, MIB = 56, 1 << 20


def numbers_of(architectures):
    return {int(number) for number in re.findall(r"\d+", architectures)}


def of_makefile():
    """The architectures that `make gpu-check` compiles for."""
    return numbers_of(re.search(r"^gpu-check: CUDA_ARCHITECTURES = (.*)$", (ROOT / "Makefile").read_text(), re.M).group(1))


def of_build(build):
    cache = (build / "CMakeCache.txt").read_text()
    return numbers_of(re.search(r"^MINDPIPE_CUDA_ARCHITECTURES:\w+=(.*)$", cache, re.M).group(1))


def device_code(build, architecture):
    """Bytes of all kernels for an architecture, packed as nvcc packs them into an object."""
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        ptx, packed = pathlib.Path(folder, "kernels.ptx"), pathlib.Path(folder, "kernels.fatbin")
        for file in sorted((ROOT / "kernels/cuda/device").glob("*.cu")):
            ptx.write_text(kernel_budgets.ptx_of(ROOT / "kernels", build, file, architecture))
            subprocess.run([kernel_budgets.NVCC, "-fatbin", "--compress-mode=size", "-arch=sm_%d" % architecture, str(ptx), "-o",
                            str(packed)], check=True)
            total += packed.stat().st_size
    return total


def code_in(program):
    """Where device code lies in a program: (first byte, bytes) of each section that holds some."""
    sections = subprocess.run(["readelf", "-SW", str(program)], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"\.nv_fatbin +\w+ +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", sections)
    return [(int(first, 16), int(size, 16)) for first, size in found]


def kernels_in(data, places):
    """Device code of a program, file by file, in whatever order it was linked."""
    begin = bytes.fromhex("50ed55ba")
    return {part.rstrip(b"\0") for first, size in places for part in data[first:first + size].split(begin)}


def without_code(data, places):
    for first, size in places:
        data = data[:first] + bytes(size) + data[first + size:]
    return data


def pack(folder):
    """Bytes of programs and libraries as bundle.sh packs them, in a window that holds all."""
    packed = subprocess.run("tar -cf - bin lib | xz --lzma2=preset=1,dict=256MiB | wc -c", shell=True, cwd=folder, capture_output=True,
                            text=True, check=True)
    return int(packed.stdout)


def expect_code_once(packed):
    """Device code lies in several programs, the same in all, and in the packed bundle no more than once: without it in all programs but
    one the bundle would be as large."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-xJf", str(packed), "-C", folder], check=True)
        programs = {program: code_in(program) for program in sorted(pathlib.Path(folder, "bin").iterdir()) if code_in(program)}
        kernels = {program.name: kernels_in(program.read_bytes(), places) for program, places in programs.items()}
        all_kernels = set().union(*kernels.values())
        own = {name: len(all_kernels - those) for name, those in kernels.items() if those != all_kernels}
        assert not own, "programs whose device code is not that of the others, and how many files of it they lack: %s" % own
        code = sum(map(len, all_kernels))
        assert len(programs) > 3 and code > MIB, (len(programs), code)
        for program, places in list(programs.items())[1:]:
            program.write_bytes(without_code(program.read_bytes(), places))
        more = packed.stat().st_size - pack(folder)
        print("device code of %d programs: %.1f MiB each, %.2f MiB for all but the first" % (len(programs), code / MIB, more / MIB))
        assert more < code / 4, "device code lies in the bundle more than once"


def bundle(build, folder, mib):
    return subprocess.run([str(ROOT / "scripts/gpu_check/bundle.sh"), str(build), str(folder), str(mib)], capture_output=True,
                          text=True)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    if kernel_budgets.NVCC is None:
        print("no nvcc here")
        return 77
    missing = sorted(of_makefile() - of_build(build))
    with concurrent.futures.ThreadPoolExecutor(2) as at_once, tempfile.TemporaryDirectory() as folder:
        made = at_once.submit(bundle, build, pathlib.Path(folder, "made"), MOST_MIB)
        more = sum(device_code(build, architecture) for architecture in missing)
        print("device code for %s: %.1f MiB" % (", ".join("sm_%d" % one for one in missing) or "nothing else", more / MIB))
        assert of_makefile() >= {80, 90} and (more > MIB / 4) == bool(missing), more
        made = made.result()
        print(made.stdout + made.stderr)
        assert made.returncode == 0, "bundle and tree are more than %d MiB" % MOST_MIB
        mib, tree, programs, libraries = map(int, re.search(
            r"made: (\d+) MiB, the tree is (\d+); unpacked, programs are (\d+) and libraries (\d+)", made.stdout).groups())
        assert mib + tree <= MOST_MIB - -(-more // MIB), "bundle and tree are more than %d MiB with this code" % MOST_MIB
        assert mib < (programs + libraries) / 2, "what programs share lies in the bundle more than once"
        assert tree > 0 and programs > libraries > 0
        again = at_once.submit(bundle, build, pathlib.Path(folder, "again"), mib + tree - 1)
        expect_code_once(pathlib.Path(folder, "made", "packed.tar.xz"))
        refused = again.result()
        assert refused.returncode == 1 and "together that is more than %d MiB" % (mib + tree - 1) in refused.stderr, refused.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
