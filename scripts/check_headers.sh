#!/usr/bin/env bash
# check_headers.sh [FOLDER or HEADER ...]: every header there compiles alone; those of src/ and kernels/, when none is named (make tidy).
# The build does not prove it: files are compiled some at a time, behind a precompiled header. A header that has passed is not compiled
# again until one that it includes has changed: times lie in $MINDPIPE_HEADER_CACHE.
set -euo pipefail
cd "$(dirname "$0")/.."
export cache=${MINDPIPE_HEADER_CACHE:-}
mpi_flags=$(pkg-config --cflags ompi-c hdf5-openmpi 2>/dev/null || pkg-config --cflags ompi-c hdf5 2>/dev/null || true)
export mpi_flags
export cuda=/usr/local/cuda/include
(($# > 0)) || set -- src kernels

check() {
  local header=$1 flags=(-std=c++20 -w -ffp-contract=off -Isrc -Ikernels)
  case $header in
    kernels/cpu/simd/*) flags+=(-DMINDPIPE_ISA=avx512 -DMINDPIPE_ISA_LEVEL=2 -fno-math-errno -fno-trapping-math
                                -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mbmi2 -mf16c -mprefer-vector-width=512) ;;
    kernels/cuda/device/*) flags+=(-Itests/kernels/cuda_on_host -Wno-unknown-pragmas) ;;   # device code is plain C++ with the runtime of the tests
    src/comm/nccl_*) [[ -f $cuda/nccl.h ]] || return 0; flags+=(-isystem "$cuda") ;;
    kernels/cuda/*) [[ -f $cuda/cuda_runtime.h ]] || return 0; flags+=(-isystem "$cuda") ;;
  esac
  flags+=($mpi_flags)
  local stamp=$cache/${header//\//_}
  if [[ -n $cache && -f $stamp.d ]]; then
    local newer=0 file
    for file in $(sed -e 's/^[^:]*://' -e 's/\\$//' "$stamp.d"); do [[ $file -nt $stamp.d || ! -e $file ]] && { newer=1; break; }; done
    ((newer)) || return 0
  fi
  local made=/dev/null
  [[ -n $cache ]] && { mkdir -p "$cache"; made=$stamp.new; }
  local name=$header
  case $header in src/* | kernels/*) name=${header#*/} ;; esac
  if ! printf '#include "%s"\n' "$name" | g++ "${flags[@]}" -fsyntax-only -MMD -MF "$made" -x c++ - ; then
    echo "$header: does not compile alone (include what it uses)" >&2
    return 1
  fi
  if [[ -n $cache ]]; then mv "$stamp.new" "$stamp.d"; fi
}
export -f check
find "$@" -name '*.h' -print0 | sort -z | nice xargs -0 -r -n 1 -P "${MINDPIPE_JOBS:-2}" bash -c 'check "$0"'
