#!/usr/bin/env bash
# Makes .venv-peers with PyTorch and transformers of the versions in tests/oracle/requirements.txt; they serve comparisons and tests, never a run.
# pip's own variables apply: with PIP_INDEX_URL set to the index of PyTorch's wheels for processors, they come without CUDA (5 GB less).
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=${1:-.venv-peers}
python=${PYTHON:-python3}
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  echo "peers.sh: $python cannot make virtual environments (no ensurepip); install python3-venv or set PYTHON" >&2
  exit 2
fi
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r tests/oracle/requirements.txt
"$venv/bin/python" -c 'import safetensors, torch, transformers
print(f"torch {torch.__version__}, transformers {transformers.__version__}, safetensors {safetensors.__version__}")'
