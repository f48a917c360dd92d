# The few things that are done often. Everything is in CMakeLists.txt; this only names it.
JOBS ?= $(shell scripts/jobs.sh)
PREFIX ?= /usr/local
BUILD := build
TRAIN := $(BUILD)/mindpipe-train

.PHONY: help all build cuda gpu-check plans configure configure-cuda setup test-tools install test test-rest test-all test-layouts test-supernets test-ranking test-faults test-functions test-bubbles test-contention test-moves test-swaps test-speed-ups test-lane-speeds test-peers test-barriers test-demo test-models asan tsan tidy demo demo-layouts demo-supernet demo-contention demo-plan demo-replay demo-balance demo-schedules demo-memory bench bench-supernet bench-plan bench-replay bench-by-hand bench-efficiency bench-versions bench-weights bench-peers published format check-format clean fuzz soak

help:            ## this list
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

all: build

setup:           ## install the Debian packages that are missing
	@scripts/setup.sh

# What is missing is installed by make setup only, and by make demo and make test, which are for trying out.
SET_UP := $(if $(filter demo demo-layouts demo-supernet demo-contention demo-plan demo-replay demo-balance demo-schedules demo-memory test test-rest test-all,$(MAKECMDGOALS)),scripts/setup.sh,false)
# A demo without a GPU needs no code for one, unless a build with it is there already.
DEMOS := demo demo-layouts demo-supernet demo-contention demo-plan demo-replay demo-balance demo-schedules demo-memory test-demo
ONLY_DEMOS := $(and $(MAKECMDGOALS),$(if $(filter-out $(DEMOS),$(MAKECMDGOALS)),,yes))
WITHOUT_CUDA := $(and $(ONLY_DEMOS),$(if $(wildcard /dev/nvidiactl /dev/dxg),,yes),$(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null),$(shell grep -qs 'MINDPIPE_CUDA:STRING=AUTO' $(BUILD)/CMakeCache.txt || echo yes))
WORD_OF_CUDA := "make: no GPU is seen here, so what a demo needs is built without CUDA; make build and make test have it"
CONFIGURE := cmake --preset release -DMINDPIPE_CUDA=$(if $(WITHOUT_CUDA),OFF,AUTO) >$(BUILD)/configure.log 2>&1
configure:
	@$(if $(WITHOUT_CUDA),echo $(WORD_OF_CUDA))
	@scripts/setup.sh --frontend; mkdir -p $(BUILD); $(CONFIGURE) || { $(SET_UP) && $(CONFIGURE); } || { cat $(BUILD)/configure.log; \
	  echo "make: configuring failed; make setup installs what is missing on Debian, elsewhere load your site's modules" >&2; exit 1; }

test-tools:      # without them tests are skipped
	@command -v slurmctld >/dev/null && python3 -c 'import importlib.util as u; exit(not (u.find_spec("torch") and u.find_spec("numpy")))' || scripts/setup.sh || true

build: configure ## build the program and its tests in build/
	cmake --build $(BUILD) -j $(JOBS)

install: configure ## put the program into PREFIX/bin, configurations and the demo's text into PREFIX/share/mindpipe (PREFIX=/usr/local)
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	cmake --install $(BUILD) --prefix $(PREFIX)

# GPUs that make cuda compiles for, and make gpu-check, whose bundle is small; for others CUDA_ARCHITECTURES=100-real, for instance.
CUDA_ARCHITECTURES = 80-real;90;100-real;120-real
gpu-check: CUDA_ARCHITECTURES = 80-real;90

configure-cuda:
	scripts/setup.sh --frontend
	cmake --preset release -B build-cuda -DMINDPIPE_CUDA=ON "-DMINDPIPE_CUDA_ARCHITECTURES=$(CUDA_ARCHITECTURES)"

cuda: configure-cuda ## build for A100, H100, H200, B200 and newer GPUs in build-cuda/ (build/ is for H100 and H200 where nvcc is)
	cmake --build build-cuda -j $(JOBS) --target mindpipe-train

# Exit code 69 of gpu-check.sh: no GPU here, which is said, and the bundle is ready for a machine that has one.
gpu-check: configure-cuda ## check and measure on a GPU in 8 minutes; without one, leave all that it takes in build-cuda/gpu-bundle/
	cmake --build build-cuda -j $(JOBS) --target mindpipe-train kernels_bench test_paper_on_gpu test_kernels_cuda_kernels test_kernels_cuda_library test_models_cuda \
	  test_runtime_mpi
	scripts/gpu_check/bundle.sh build-cuda build-cuda/gpu-bundle
	build-cuda/gpu-bundle/gpu-check.sh --output runs/gpu-check || [ $$? = 69 ]

plans: configure ## what cuDNN would plan for every GPU of data/devices (GPU=h100: for one), without a GPU: build/plans/*.txt as it goes, *.json at its end; 8 minutes a GPU
	cmake --build $(BUILD) -j $(JOBS) --target plans$(addprefix _,$(GPU))

# run_tier LABEL FILE JOBS: the tests of a tier, so many at once, their report as FILE, and which were skipped and why.
define run_tier
@echo ctest --test-dir $(BUILD) -L $(1) --output-on-failure --no-label-summary -j $(3)
@ctest --test-dir $(BUILD) -L $(1) --output-on-failure --no-label-summary -j $(3) --output-junit $(abspath $(BUILD))/$(2); code=$$?; \
  scripts/skipped_tests.py $(BUILD)/$(2); exit $$code
endef
# Thorough tests wait for Slurm, killed jobs and sleeping ranks for much of their time: one more of them at once than there are processors.
ONE_MORE = $(shell echo $$(($(JOBS) + 1)))

test: test-tools configure ## build, and run the tests that say within 4 minutes whether this build works here and whether a change broke something
	cmake --build $(BUILD) -j $(JOBS) --target quick_tests
	$(call run_tier,quick,tests.xml,$(JOBS))

test-rest: test-tools build # what make test-all runs beside make test
	$(call run_tier,thorough,tests_thorough.xml,$(ONE_MORE))

test-all: test   ## make test, then the tests that take longer: every layout, mistake and document that can be tried without a GPU
	cmake --build $(BUILD) -j $(JOBS)
	$(call run_tier,thorough,tests_thorough.xml,$(ONE_MORE))

test-layouts: configure ## the bits of one rank on every grid of 1 to 8 ranks with every schedule, and a choice of 16: an hour
	cmake --build $(BUILD) -j $(JOBS) --target test_runtime_mpi test_runtime_checkpoint_mpi
	scripts/test_layouts.sh $(BUILD)

test-supernets: configure ## subnets in flight have the bits of one after the other: 300 on every grid to 16 ranks, an audit of 480, other orders beside them
	cmake --build $(BUILD) -j $(JOBS) --target test_runtime_mpi test_app_mpi
	scripts/test_supernets.sh $(BUILD)

test-ranking: configure ## all 81 networks of a space trained from scratch, beside their scores in supernets; a found network against ten drawn ones: 20 minutes (RANKING="--parts dates")
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	python3 scripts/test_ranking.py $(TRAIN) $(RANKING)

test-models: configure ## dates, shapes and masked letters, learned by tiny models until nearly all are right: at most 3 minutes each (MODELS=evolved-tiny: an Evolved Transformer of 3 + 4 cells, 15 minutes)
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/test_models.sh $(TRAIN) $(MODELS)

test-faults: configure ## SIGKILL and failing calls at every point of a save, in the foreground and the background: 6 minutes
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train file_faults
	for part in kill disk; do MINDPIPE_ALL_FAULTS=1 python3 -B tests/app/checkpoints/$${part}_test.py $(abspath $(TRAIN) $(BUILD)/tests/libfile_faults.so) || exit; done

test-functions: configure ## all 2^32 arguments of each of 17 functions of one f32 on avx2 and avx512, bit for bit: 11 minutes of a processor, shared out among all
	cmake --build $(BUILD) -j $(JOBS) --target test_kernels
	MINDPIPE_ALL_NUMBERS=1 $(BUILD)/tests/test_kernels --gtest_brief=1 --gtest_filter='Functions/*'

# Other programs' turns are no bubble of ours: real-time priority, where this user may have it.
AT_ONCE = $(shell chrt -f 30 true 2>/dev/null && echo chrt -f 30)
test-bubbles: configure ## bubbles of emulated pipelines of 2 to 16 stages beside the simulator's; on a machine that runs nothing else, 2 minutes
	cmake --build $(BUILD) -j $(JOBS) --target test_runtime_emulated_mpi
	for ranks in 2 4 8 16; do MINDPIPE_ALL_LAYOUTS=1 $(AT_ONCE) tests/run_mpi.sh $$ranks $(BUILD)/tests/test_runtime_emulated_mpi \
	  --gtest_brief=1 --gtest_filter='*Bubble*' || exit; done

test-contention: configure ## steps and subnets of emulated ranks whose transfers meet at ports, beside the simulator's, and messages beside sums of two real ranks; on a machine that runs nothing else, 15 minutes
	cmake --build $(BUILD) -j $(JOBS) --target test_runtime_contention_mpi test_comm_beside_sums_mpi
	for ranks in 8 16; do MINDPIPE_ALL_LAYOUTS=1 $(AT_ONCE) tests/run_mpi.sh $$ranks $(BUILD)/tests/test_runtime_contention_mpi \
	  --gtest_brief=1 || exit; done
	MINDPIPE_ALL_LAYOUTS=1 tests/run_mpi.sh 2 $(BUILD)/tests/test_comm_beside_sums_mpi --gtest_brief=1

test-moves: configure ## a thousand steps on 4 stages whose blocks move every 50 steps, under ZeRO 0 to 2 too, have the bits of one rank; moving steps of emulated stages take what their plan says: 16 minutes on two slow cores
	cmake --build $(BUILD) -j $(JOBS) --target test_runtime_moving_blocks_mpi test_runtime_moving_time_mpi
	for ranks in 4 8; do MINDPIPE_ALL_LAYOUTS=1 tests/run_mpi.sh $$ranks $(BUILD)/tests/test_runtime_moving_blocks_mpi \
	  --gtest_filter='*ThousandSteps' --gtest_brief=1 || exit; done
	MINDPIPE_ALL_LAYOUTS=1 $(AT_ONCE) tests/run_mpi.sh 8 $(BUILD)/tests/test_runtime_moving_time_mpi --gtest_brief=1

test-swaps: configure ## steps of eight emulated stages that swap tapes take what their plan says; what the planner chooses for 300 chains of blocks is near the best of all choices: 10 minutes
	cmake --build $(BUILD) -j $(JOBS) --target test_runtime_swap_time_mpi test_plan_thorough
	MINDPIPE_ALL_LAYOUTS=1 $(AT_ONCE) tests/run_mpi.sh 8 $(BUILD)/tests/test_runtime_swap_time_mpi --gtest_brief=1
	MINDPIPE_CHAINS=300 $(BUILD)/tests/test_plan_thorough --gtest_filter='TapeSearch*'

test-speed-ups: configure ## speed-ups of supernets on 8 emulated stages, three streams for each of 13 settings, and of scores, beside the simulator's; on a machine that runs nothing else, 15 minutes
	cmake --build $(BUILD) -j $(JOBS) --target test_runtime_mpi
	for ranks in 1 2 8; do MINDPIPE_ALL_LAYOUTS=1 $(AT_ONCE) tests/run_mpi.sh $$ranks $(BUILD)/tests/test_runtime_mpi \
	  --gtest_brief=1 --gtest_filter='*SpeedUps*' || exit; done

test-lane-speeds: configure ## how much faster two and four lanes are than one, cuts of their own than one for all, up to 32 emulated ranks, beside the simulator's; on a machine that runs nothing else, 40 minutes
	cmake --build $(BUILD) -j $(JOBS) --target test_runtime_mpi
	for ranks in 1 8 16 32; do MINDPIPE_ALL_LAYOUTS=1 $(AT_ONCE) tests/run_mpi.sh $$ranks $(BUILD)/tests/test_runtime_mpi \
	  --gtest_brief=1 --gtest_filter='LaneSpeeds.*' || exit; done

test-barriers: configure ## barriers of the GPU's kernels left out and moved, shared memory not written, launch bounds halved, one at a time: the tests on the host notice each; 30 minutes on two cores
	cmake --build $(BUILD) -j $(JOBS) --target test_kernels_cuda_on_host test_kernels_cuda_on_host_flash test_kernels_cuda_on_host_flash_cases
	scripts/try_barriers.py --build $(BUILD)

test-peers: configure ## install PyTorch, transformers, tiktoken, sentencepiece and MindSpore into .venv-peers and .venv-mindspore (8 GB), then run every test that compares with them: 8 minutes
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train test_app test_app_thorough test_app_mpi test_io ids_of_texts
	scripts/test_peers.sh $(BUILD)

tsan:            ## build the program in build-tsan/ with the thread sanitizer, and run it where its threads meet: watchdog, planning, checkpoints
	@mkdir -p build-tsan && cmake --preset tsan >build-tsan/configure.log 2>&1 || { cat build-tsan/configure.log; exit 1; }
	cmake --build build-tsan -j $(JOBS) --target mindpipe-train test_comm
	scripts/tsan.sh build-tsan

asan:            ## build in build-asan/ with the address and undefined-behaviour sanitizers, and run the tests that make sense there
	@mkdir -p build-asan && cmake --preset asan >build-asan/configure.log 2>&1 || { cat build-asan/configure.log; exit 1; }
	cmake --build build-asan -j $(JOBS)
	scripts/asan.sh build-asan $(JOBS)

soak:            ## kills, stops, signals and full disks at random times, on changing grids, for HOURS=1 (SEED=n repeats one), then 200 killed ranks: 10 minutes
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train file_faults
	scripts/soak.py $(TRAIN) $(BUILD)/tests/libfile_faults.so $(or $(HOURS),1) $(SEED)
	cd / && MINDPIPE_KILLS=200 python3 -B $(CURDIR)/tests/app/checkpoints/signals_test.py $(abspath $(TRAIN) $(BUILD)/tests/libfile_faults.so) Signals.test_a_rank_that_is_killed_at_any_step_costs_no_bit

fuzz:            ## bytes that nobody meant into what reads files, of others and of runs, 10 minutes a fuzzer, with the sanitizers (FUZZ="tokenizer_json pattern", SECONDS_EACH=600)
	@scripts/setup.sh --fuzz; mkdir -p build-fuzz && cmake --preset fuzz >build-fuzz/configure.log 2>&1 || { cat build-fuzz/configure.log; exit 1; }
	cmake --build build-fuzz -j $(JOBS) --target fuzzers
	scripts/fuzz.sh build-fuzz $(or $(SECONDS_EACH),600) $(FUZZ)

tidy:            ## compile each header of src/ and kernels/ alone, and look for mistakes with clang-tidy (TIDY="src/comm" for some folders)
	@mkdir -p $(BUILD)/tidy && cmake --preset release -B $(BUILD)/tidy -DMINDPIPE_UNITY=OFF >$(BUILD)/tidy.log 2>&1 || { cat $(BUILD)/tidy.log; exit 1; }
	MINDPIPE_HEADER_CACHE=$(BUILD)/tidy/headers MINDPIPE_JOBS=$(JOBS) scripts/check_headers.sh $(TIDY)
	scripts/tidy.sh $(BUILD)/tidy $(JOBS) $(TIDY)

demo: configure  ## train a small model for a minute, draw its losses and let it write
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/demo.sh $(TRAIN)

test-demo: configure ## the demo as it is, with each instruction set of this processor: its words, its time, its loss; a minute and a half each
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/test_demo.sh $(TRAIN)

demo-layouts: configure ## the same weights from four layouts, and others where one sum is left out: 30 seconds
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train train_with_a_fault
	@scripts/demo_layouts.sh $(TRAIN) $(BUILD)/tests/train_with_a_fault

demo-supernet: configure ## a supernet that writes dates: trained, searched, and what is found trained beside a network that was drawn: a minute
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/demo_supernet.sh $(TRAIN)

demo-contention: configure ## which traffic delays which: sums and messages at the ports of a stage on one picture, and a plan of 64 ranks: a minute
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train draw_contention
	@scripts/demo_contention.sh $(TRAIN) $(BUILD)/tests/draw_contention

demo-plan: configure ## measure this machine, find the best layout on two ranks, draw it on a page, and run the best two: a minute
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/demo_plan.sh $(TRAIN)

demo-replay: configure ## a slow rank among eight emulated stages: who it is, what it costs, what would help, and the step without it: two minutes
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/demo_replay.sh $(TRAIN)

demo-balance: configure ## four stages of which one is slow for a while: the cut follows while it trains, and goes back, and no bit changes: 70 s on two slow cores
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/demo_balance.sh $(TRAIN)

demo-schedules: configure ## one model on four emulated stages by five schedules and one that is searched, in one picture: half a minute
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/demo_schedules.sh $(TRAIN)

demo-memory: configure ## tapes that do not fit into four emulated stages: computed again, or swapped to the host while others compute, in one picture: half a minute
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	@scripts/demo_memory.sh $(TRAIN)

bench: configure ## measure products, steps of GPT-2 124M and of other models, and layouts against PyTorch and MPI, an hour and a half (BENCH="--parts training")
	cmake -B $(BUILD) -DMINDPIPE_BENCH=ON >>$(BUILD)/configure.log && cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train ids_of_texts products_bench sums_bench runtime_bench checkpoints_bench test_runtime_contention_mpi
	python3 scripts/bench/bench.py $(BENCH)

published: configure ## every step of data/published that others have measured, beside what plans say of it: 2 minutes (PUBLISHED="--vtrain": 1,440 steps of one node, too)
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	python3 scripts/published.py --program $(BUILD)/mindpipe-train $(PUBLISHED)

bench-supernet: configure ## supernets against a GPT of the same shape, on two ranks against one; what orders, samplers and windows do: 15 minutes
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train test_program
	python3 scripts/bench/supernet.py $(BENCH)

bench-plan: configure ## steps that plans predict from one profile beside steps that run, real and emulated, on a machine that runs nothing else: half an hour (PREDICTION="--cells 5")
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	python3 scripts/bench/prediction.py --binary $(BUILD)/mindpipe-train $(PREDICTION)

bench-replay: configure ## what replay says of emulated runs with a drawn fault, and of other programs, beside what is true, on a machine that runs nothing else: two hours (REPLAY="--runs 10")
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	python3 scripts/bench/replay.py --binary $(BUILD)/mindpipe-train $(REPLAY)

bench-by-hand: configure ## steps of its own layout, a rule of thumb and the search: of each bundled configuration on paper, of seven measured: 20 minutes (BY_HAND="--parts simulated")
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	python3 scripts/bench/by_hand.py --binary $(BUILD)/mindpipe-train $(BY_HAND)

bench-efficiency: configure ## one small model to one loss with five batches and three seeds: steps beside S = S_min (1 + phi / B): 15 minutes (EFFICIENCY="--loss 2.0")
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	python3 scripts/bench/efficiency.py --binary $(BUILD)/mindpipe-train $(EFFICIENCY)

bench-versions: configure ## an older build against this one, in turn, on a machine that runs nothing else: 20 minutes (VERSIONS="../old/build/mindpipe-train --only f32,lanes")
	cmake --build $(BUILD) -j $(JOBS) --target mindpipe-train
	python3 scripts/bench/versions.py --binary $(BUILD)/mindpipe-train $(VERSIONS)

bench-weights: configure ## time and memory of writing and reading the weights of GPT-2 124M on four ranks against one, five times in turn: a minute (BENCH="--repeats 3")
	cmake --build $(BUILD) -j $(JOBS) --target weights_bench
	python3 scripts/bench/weights.py $(BUILD)/scripts/bench/weights_bench $(BENCH)

bench-peers:     ## install the PyTorch of tests/oracle/requirements.txt for the comparison, into .venv-peers
	scripts/bench/peers.sh

format:          ## put all sources into the style of the house
	git ls-files '*.h' '*.cpp' '*.cu' | xargs clang-format -i

check-format:    ## say what make format would change
	git ls-files '*.h' '*.cpp' '*.cu' | xargs clang-format --dry-run --Werror

clean:           ## remove build/
	rm -rf $(BUILD)
