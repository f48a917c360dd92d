#!/usr/bin/env bash
# Checks MindPipe on this machine's GPU; `gpu-check.sh --help` says how. It needs bash and Python 3.8, and NVIDIA's driver, cuBLAS and cuDNN.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "gpu-check: no $python here; name an interpreter with PYTHON=... (3.8 or newer)" >&2; exit 2; }
[[ -d $here/lib ]] || tar -C "$here" -xzf "$here/packed.tar.gz"   # on the way here
exec "$python" "$here/check/gpu_check.py" "$@"
