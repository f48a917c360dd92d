#!/usr/bin/env bash
# setup.sh: installs what a build and its tests need on Debian 12. With everything there it only looks, in less than a second.
# setup.sh --frontend: only fetches the headers that a build with CUDA needs; elsewhere it does nothing.
# setup.sh --fuzz: what make fuzz needs besides: clang with its sanitizers and libFuzzer.
set -euo pipefail
cd "${0%/*}/.."

# Where there is nvcc: the headers of cuDNN's frontend (kernels/cuda/README.md says why), of one version and one checksum. Offline the build goes on without.
fetch_frontend() {
  frontend=1.32.0 checksum=c6006556017a4d1c914c52a556c71b1267f2d6a0500f742e7b4edef539878df0 folder=.gpu/cudnn-frontend-1.32.0
  if [[ ! -e $folder/include/cudnn_frontend.h ]] && { command -v nvcc || [[ -x /usr/local/cuda/bin/nvcc ]]; } >/dev/null; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    echo "nvidia-cudnn-frontend==$frontend --hash=sha256:$checksum" >"$scratch/wanted"
    if python3 -m pip download -q --disable-pip-version-check --no-deps --retries 1 --timeout 15 --require-hashes --only-binary=:all: --python-version 3.11 \
      --platform manylinux_2_28_x86_64 -r "$scratch/wanted" -d "$scratch" 2>"$scratch/log" && python3 -m zipfile -e "$scratch"/*.whl "$scratch/wheel"; then
      mkdir -p "$folder" && cp -r "$scratch/wheel/include" "$folder/"
    else
      echo "setup.sh: without cuDNN's frontend $frontend, attention on a GPU is computed by our own kernels only ($(tail -n 1 "$scratch/log"))" >&2
    fi
  fi
}

if [[ ${1:-} == --frontend ]]; then
  fetch_frontend
  exit
fi
if ! command -v apt-get >/dev/null; then
  echo "setup.sh: this is no Debian; load or install a C++20 compiler, CMake, Ninja, pkg-config, MPI, HDF5, ISA-L, zlib, zstd, yaml-cpp, fmt, CLI11, nlohmann-json, PCRE2, utf8proc, SentencePiece and GoogleTest yourself" >&2
  exit 1
fi
fetch_frontend

packages=(
  build-essential cmake ninja-build ccache pkg-config
  openmpi-bin libopenmpi-dev libhdf5-openmpi-dev libdnnl-dev libopenblas-dev
  libisal-dev zlib1g-dev libzstd-dev libyaml-cpp-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libpcre2-dev libutf8proc-dev libsentencepiece-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  munge slurmctld slurmd slurm-client   # a Slurm of its own for one test
  strace   # what a save does to the disk
  python3-torch python3-numpy   # the oracle of the tests; no run needs Python
  python3-h5py   # reads checkpoints in a test
)
[[ ${1:-} != --fuzz ]] || packages+=(clang libclang-rt-dev libomp-dev)
installed=$(dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^ii *//p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -qx -- "$package" <<<"$installed" || missing+=("$package")
done
((${#missing[@]} == 0)) && exit 0

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if ((EUID != 0)); then
  echo "setup.sh: packages are missing; run: sudo ${install[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
echo "setup.sh: installing ${missing[*]}"
"${install[@]}" >/tmp/mindpipe-setup.log 2>&1 || {   # the lists of a fresh image are empty or old
  apt-get update >>/tmp/mindpipe-setup.log 2>&1 && "${install[@]}" >>/tmp/mindpipe-setup.log 2>&1
} || { tail -n 20 /tmp/mindpipe-setup.log >&2; echo "setup.sh: apt-get failed (the whole log: /tmp/mindpipe-setup.log)" >&2; exit 1; }
