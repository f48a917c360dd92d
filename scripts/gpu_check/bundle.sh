#!/usr/bin/env bash
# bundle.sh BUILD FOLDER [MIB]: everything that gpu-check needs on a machine with a GPU and nothing of ours installed: stripped programs of BUILD, the
# libraries they stand on (not glibc's, not NVIDIA's), what Open MPI needs to start ranks on one machine, configurations and scripts.
# FOLDER may be copied anywhere; FOLDER/gpu-check.sh runs it all. Says how large it is, and refuses to make more than 56 MiB, or MIB, together
# with the tree, beside which it travels.
set -euo pipefail
build=$(realpath "${1:?bundle.sh BUILD FOLDER}") folder=${2:?bundle.sh BUILD FOLDER}
cd "$(dirname "$0")/../.."
fail() { echo "bundle.sh: $*" >&2; exit 1; }
most_mib=${3:-56}

# What no bundle may bring along: the C library, which belongs to the kernel's side of the machine, and the driver.
not_ours='/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nss_[a-z]*|cuda|nvidia-[a-z0-9-]*))\.so'
needs() { ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u | grep -vE "$not_ours" || true; }

rm -rf "$folder"
mkdir -p "$folder"/{bin,lib/openmpi,lib/pmix,share/openmpi,share/pmix,etc,check,bench,configs}
folder=$(realpath "$folder")
programs=("$build/mindpipe-train" "$build/scripts/bench/kernels_bench")
for test in paper_on_gpu kernels_cuda_kernels kernels_cuda_library models_cuda runtime_mpi; do programs+=("$build/tests/test_$test"); done
for program in "${programs[@]}"; do [[ -x $program ]] || fail "$program is not there; make gpu-check builds it"; done
cp "${programs[@]}" "$folder/bin/"

# Open MPI: its starter, and of its plugins those for ranks of one machine; others would bring libraries of networks along.
mpirun=$(command -v mpirun) || fail "no mpirun here"
cp "$(realpath "$mpirun")" "$folder/bin/mpirun"
cp "$(command -v orted)" "$folder/bin/orted"
plugins=$(ompi_info --parsable --path pkglibdir | sed 's/.*://')
messages=$(ompi_info --parsable --path pkgdatadir | sed 's/.*://')
for plugin in "$plugins"/mca_*.so; do
  case $(basename "$plugin" .so) in
    mca_*_ucx | mca_*_ofi | mca_mtl_* | mca_*_openib | mca_pml_cm | mca_*_slurm | mca_*_flux | mca_*_jsm | mca_ras_gridengine | mca_spml_* | mca_s*coll_* | \
      mca_sshmem_* | mca_memheap_* | mca_atomic_* | mca_fs_* | mca_fcoll_* | mca_fbtl_* | mca_sharedfp_* | mca_osc_* | mca_*_monitoring) ;;
    *) cp "$plugin" "$folder/lib/openmpi/" ;;
  esac
done
cp "$messages"/*.txt "$folder/share/openmpi/"
pmix=$(ldd "$plugins"/mca_pmix_ext3x.so | awk '$1 ~ /^libpmix/ {print $3}')
pmix=$(dirname "$(realpath "$pmix")")
find "$pmix/pmix" -name '*mca_*.so' ! -name '*slurm*' -exec cp {} "$folder/lib/pmix/" \;
find "$pmix/../share/pmix" -name 'help-*.txt' -exec cp {} "$folder/share/pmix/" \;

mapfile -t libraries < <(needs "$folder"/bin/* "$folder"/lib/openmpi/*.so "$folder"/lib/pmix/*.so)
for library in "${libraries[@]}"; do cp -L "$library" "$folder/lib/"; done
find "$folder/bin" "$folder/lib" -type f -exec strip --strip-unneeded {} +

cp scripts/gpu_check/*.py "$folder/check/"
cp scripts/bench/torch_gpt.py scripts/bench/torch_training.py scripts/bench/token_pair.py "$folder/bench/"
cp -r configs/*.yaml configs/spaces "$folder/configs/"
cp scripts/gpu_check/gpu-check.sh "$folder/"
value_of() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
cuda=$(sed -nE 's/.*define CUDART_VERSION +([0-9]+).*/\1/p' "$(dirname "$(value_of MINDPIPE_NVCC)")/../include/cuda_runtime_api.h" 2>/dev/null | head -n 1)
printf '{"commit": "%s", "cuda": "%s", "architectures": "%s", "libraries": ["libcuda.so.1", "libcublasLt.so.%s", "libcudnn.so.9", "libnccl.so.2", "libcudart.so.%s"]}\n' \
  "$(git describe --always --dirty --abbrev=12)" "$cuda" "$(value_of MINDPIPE_CUDA_ARCHITECTURES)" "$((cuda / 1000))" "$((cuda / 1000))" >"$folder/bundle.json"

programs_mib=$(du -sm --apparent-size "$folder/bin" | cut -f 1) libraries_mib=$(du -sm --apparent-size "$folder/lib" | cut -f 1)
# Programs share most of their code, the GPU's too: a window over all of them finds it once. gpu-check.sh unpacks it.
tar -C "$folder" -cf - bin lib | xz --lzma2=preset=1,dict=128MiB >"$folder/packed.tar.xz" && rm -r "$folder"/{bin,lib}
mib=$(du -sm --apparent-size "$folder" | cut -f 1)
tree_mib=$(git ls-files -z | du -cm --apparent-size --files0-from=- 2>/dev/null | tail -n 1 | cut -f 1)
echo "$folder: $mib MiB, the tree is $tree_mib; unpacked, programs are $programs_mib and libraries $libraries_mib"
((mib + tree_mib <= most_mib)) || fail "together that is more than $most_mib MiB"
