#!/usr/bin/env python3
"""peak_memory.py FILE PROGRAM [ARGUMENTS]: runs the program and writes into FILE.RANK the most memory, in bytes,
that ever was resident of it. RANK is the rank that mpirun gives, 0 without it."""
import os
import resource
import subprocess
import sys

status = subprocess.call(sys.argv[2:])
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
with open(f"{sys.argv[1]}.{os.environ.get('OMPI_COMM_WORLD_RANK', 0)}", "w") as file:
    file.write(str(peak))
sys.exit(status)
