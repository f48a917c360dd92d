#!/usr/bin/env bash
# run_mpi.sh RANKS PROGRAM [ARGUMENTS]: one test on some ranks of this machine, as root too, threads kept to one a rank.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
ranks=$1; shift
exec mpirun --oversubscribe --bind-to none -np "$ranks" "$@"
