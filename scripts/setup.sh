#!/usr/bin/env bash
# Installs what a build and its tests need on Debian 12. With everything there it only looks, in less than a second.
set -euo pipefail
packages=(
  build-essential cmake ninja-build ccache pkg-config
  openmpi-bin libopenmpi-dev libhdf5-openmpi-dev libdnnl-dev libopenblas-dev
  libyaml-cpp-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  munge slurmctld slurmd slurm-client   # a Slurm of its own for one test
  python3-torch python3-numpy   # the oracle of the tests; no run needs Python
)
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
