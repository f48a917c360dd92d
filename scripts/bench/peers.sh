#!/usr/bin/env bash
# Makes .venv-peers with PyTorch and transformers of the versions in tests/oracle/requirements.txt; they serve comparisons and tests, never a run.
# peers.sh [FOLDER [REQUIREMENTS]] makes another one.
# pip's own variables apply: with PIP_INDEX_URL set to the index of PyTorch's wheels for processors, they come without CUDA (5 GB less).
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=${1:-.venv-peers} requirements=${2:-tests/oracle/requirements.txt}
python=${PYTHON:-python3}
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  echo "peers.sh: $python cannot make virtual environments (no ensurepip); install python3-venv or set PYTHON" >&2
  exit 2
fi
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"
"$venv/bin/python" -m pip list --disable-pip-version-check --format=freeze | grep -E '^(torch|transformers|safetensors|mindspore)==' | paste -sd ' '
