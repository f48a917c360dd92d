"""Where CUDA's libraries are on this machine, and the environment in which the bundle's programs run."""
import glob
import os
import subprocess
import sys
import time

import running

# Opens a library and says what the loader says against it. Whatever else goes wrong says nothing of the library.
OPENS = """
import ctypes, sys
try:
    ctypes.CDLL(sys.argv[1])
except OSError as error:
    print("refused: " + " ".join(str(error).split()))
"""


def known_to_the_loader():
    """Names of libraries that a program finds without being told where."""
    for command in ("ldconfig", "/sbin/ldconfig"):
        try:
            listing = subprocess.run([command, "-p"], capture_output=True, text=True, timeout=3).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        return {line.split()[0] for line in listing.splitlines()[1:] if line.split()}
    return set()


def python_folders(python):
    """Folders of NVIDIA's packages (nvidia/*/lib) among those that this interpreter imports from."""
    try:
        listing = subprocess.run([python, "-c", "import sys; print(*sys.path, sep='\\n')"],
                                 capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [
        folder for place in listing.splitlines() if place
        for folder in sorted(glob.glob(os.path.join(place, "nvidia", "*", "lib")))
    ]


def candidates(python, path=os.environ.get("LD_LIBRARY_PATH", "")):
    """Folders to look in, what the user has set first."""
    folders = [folder for folder in path.split(":") if folder]
    for pattern in ("/usr/local/cuda/lib64", "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib",
                    "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"):
        folders += sorted(glob.glob(pattern), reverse=True)
    return folders + python_folders(python)


def find(names, folders, known):
    """Returns ({library: folder or "" where the loader knows it}, [those that are nowhere])."""
    found, missing = {}, []
    for name in names:
        folder = "" if name in known else next(
            (f for f in folders if os.path.exists(os.path.join(f, name))), None)
        if folder is None:
            missing.append(name)
        else:
            found[name] = folder
    return found, missing


def refused(names, environment, folder, seconds=8):
    """{library: the loader's words} of those that a program in this environment cannot open, of as many as time
    lets be tried."""
    answers, end = {}, time.monotonic() + seconds
    for name in names:
        left = end - time.monotonic()
        if left <= 0:
            break
        told = running.run([sys.executable, "-S", "-c", OPENS, name], environment, left,
                           os.path.join(folder, "libraries.log"))[1]
        for line in told.splitlines():
            if line.startswith("refused: "):
                answers[name] = line[len("refused: "):]
    return answers


def environment_of(bundle, found, base):
    """The environment of the bundle's programs: their own libraries first, then what the user has set, then
    CUDA's; Open MPI as it lies in the bundle, ranks on this machine only, more of them than processors
    allowed."""
    lib = os.path.join(bundle, "lib")
    folders = [lib] + [f for f in base.get("LD_LIBRARY_PATH", "").split(":") if f
                       ] + [f for f in found.values() if f]
    made = {
        name: value
        for name, value in base.items() if not name.startswith(("OMPI_", "OPAL_", "PMIX_", "ORTE_", "SLURM_"))
    }
    made.update({
        "LD_LIBRARY_PATH": ":".join(dict.fromkeys(folders)),
        "PATH": os.path.join(bundle, "bin") + ":" + base.get("PATH", "/usr/bin:/bin"), "OPAL_PREFIX": bundle,
        "OPAL_BINDIR": os.path.join(bundle, "bin"), "OPAL_LIBDIR": lib,
        "OPAL_PKGLIBDIR": os.path.join(lib, "openmpi"), "OPAL_DATADIR": os.path.join(bundle, "share"),
        "OPAL_PKGDATADIR": os.path.join(bundle, "share", "openmpi"),
        "OPAL_SYSCONFDIR": os.path.join(bundle, "etc"), "PMIX_PREFIX": bundle, "PMIX_LIBDIR": lib,
        "PMIX_PKGLIBDIR": os.path.join(lib, "pmix"), "PMIX_DATADIR": os.path.join(bundle, "share"),
        "PMIX_PKGDATADIR": os.path.join(bundle, "share", "pmix"), "PMIX_SYSCONFDIR": os.path.join(
            bundle, "etc"), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_plm": "isolated", "OMPI_MCA_plm_rsh_agent": "/bin/false",
        "OMPI_MCA_orte_tmpdir_base": "/tmp", "OMP_WAIT_POLICY": "passive"
    })
    return made
