#!/usr/bin/env bash
# Checks MindPipe on this machine's GPU; `gpu-check.sh --help` says how. It needs bash and Python 3.8, and NVIDIA's driver, cuBLAS and cuDNN.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "gpu-check: no $python here; name an interpreter with PYTHON=... (3.8 or newer)" >&2; exit 2; }
if [[ ! -d $here/lib ]]; then   # whole or not at all
  rm -rf "$here"/unpacking.*    # of a start that was killed
  fresh=$(mktemp -d "$here/unpacking.XXXXXX")
  "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$here/packed.tar.xz" "$fresh" ||
    { rm -rf "$fresh"; echo "gpu-check: packed.tar.xz cannot be unpacked (is the bundle whole, and is there room for 150 MB?)" >&2; exit 2; }
  rm -rf "$here/bin" && mv "$fresh/bin" "$fresh/lib" "$here/" && rmdir "$fresh"
fi
exec "$python" "$here/check/gpu_check.py" "$@"
