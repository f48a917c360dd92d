#include <gmock/gmock.h>

#include "cuda/device/group.h"
#include "cuda/error.h"
#include "kernels/gpu_on_host.h"
#include "kernels/mirror.h"

/// The GPU backend's own kernels on the host: every thread of every block, in several orders, on the runtime
/// of tests/kernels/cuda_on_host.
using namespace mindpipe;

class Cuda : public ::testing::Test {
 public:
  static mindpipe::testing::Pairing& pairing() { return *pairing_; }
  template <class Run>
  void for_orders(const Run& run) {
    for (const on_host::Order order : {on_host::Order{}, {.backwards = true}, {.seed = 1}}) {
      SCOPED_TRACE(fmt::format("{}, seed {}", order.backwards ? "backwards" : "forwards", order.seed));
      on_host::run_in(order);
      run();
    }
  }

 protected:
  static void SetUpTestSuite() {
    pairing_ = std::make_unique<mindpipe::testing::Pairing>();
    pairing_->gpu = std::make_unique<GpuOnHost>(pairing_->memory, *pairing_->cpu.backend);
  }
  static void TearDownTestSuite() { pairing_.reset(); }

 private:
  static inline std::unique_ptr<mindpipe::testing::Pairing> pairing_;
};

#include "kernels/cuda_cases.h"

namespace {

std::string error_of(const std::function<void()>& action, Exit* code = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (code != nullptr) *code = error.code;
    return error.what();
  }
  return "nothing was thrown";
}

/// Marks every element that its walk comes to.
template <class Ending>
void mark(int* marks, Ending ending) {
  for (int k = 0; k < 4; ++k)
    if (cuda::there(ending, k)) ++marks[k];
}
void mark_groups(int* marks, std::int64_t count, bool wide) {
  cuda::for_group<4>(count, wide, [&](std::int64_t i, auto ending) { mark(marks + i, ending); });
}
void mark_row_groups(int* marks, std::int64_t rows, std::int64_t cols, bool wide) {
  cuda::for_row_group<4>(rows, cols, wide, [&](std::int64_t n, std::int64_t j, auto ending) {
    mark(marks + n * cols + j, ending);
  });
}
void mark_groups_of_block(const float* from, int* marks, std::int64_t count, bool wide) {
  cuda::for_groups_of_block<64, 4>(from, count, wide,
                                   [&](std::int64_t i, auto, auto ending) { mark(marks + i, ending); });
}

/// The tensors of a small step on the GPU, and the operations that its passes and its update run on them.
/// What they compute means nothing: only that they run.
struct SmallStep {
  Maker make{Cuda::pairing(), DType::bf16, 0};
  SequencePart sequence{.samples = 2, .rows = 3, .first = 0, .whole = 3};
  Shape shape{2, 3, 64};
  Mirror x = make.random(shape, "x"), y = make.empty(shape), normed = make.empty(shape);
  Mirror both = make.random({2, 3, 128}, "both"), heads = make.random({2, 3, 4, 16}, "heads");
  Mirror gain = make.random({64}, "gain"), dgain = make.wide({1, 64}, "dgain");
  Mirror statistics = make.wide({6, 2}, "statistics");
  Mirror tokens{make.pairing, Operand::tokens({1, 2, 2, 0, 9, 1})};
  Mirror picks{make.pairing, Operand({2, 3}, DType::i32)}, bytes{make.pairing, Operand({2, 192}, DType::u8)};
  Mirror table = make.random({4, 64}, "table"), dtable = make.wide({4, 64}, "dtable");
  Mirror logits = make.wide({6, 64}, "logits"), rows = make.empty_wide({6}),
         three_rows = make.empty_wide({3, 6});
  Mirror flat = make.wide({384}, "m");  ///< stands for the gradient, the master and the moments of x
  Mirror spans{make.pairing, Operand::tokens({0, 384})};
  Mirror sums{make.pairing, Operand({1}, DType::f64)}, totals{make.pairing, Operand({2}, DType::f64)};
  Mirror integers{make.pairing, Operand({384}, DType::i64)}, marks{make.pairing, Operand({1}, DType::i64)};
  Mirror hits{make.pairing, Operand({Hits::places}, DType::f64)};
  Mirror decision{make.pairing, Operand({Decision::places}, DType::f64)};

  void forward(Backend& gpu) const {
    gpu.embedding({tokens.device(), table.device(), 0, x.device()});
    gpu.add_positions({.x = x.device(),
                       .positions = table.device(),
                       .sequence = sequence,
                       .first_position = 0,
                       .y = y.device()});
    gpu.add_sinusoids({.x = x.device(), .sequence = sequence, .y = x.device()});
    gpu.residual_norm({x.device(), y.device(), gain.device(), drop, sequence, y.device(), NormKind::layer,
                       gain.device(), gain.device(), 1e-5, statistics.device(), normed.device()});
    gpu.norm({.kind = NormKind::rms,
              .x = x.device(),
              .gain = gain.device(),
              .epsilon = 1e-5,
              .statistics = statistics.device(),
              .y = normed.device()});
    gpu.rotary({{heads.device(), 0, 4}, rotary_frequencies(10000, 16), 0, false});
    gpu.swiglu({both.device(), y.device()});
    gpu.row_maximum({logits.device(), 60, rows.device()});
    gpu.pick_rows({x.device(), picks.device(), y.device()});
    gpu.patches({bytes.device(), {1, 8, 24, 8}, 0, x.device()});
    gpu.softmax_sums({logits.device(), 60, 0, tokens.device(), rows.device(), rows.device(), rows.device(),
                      rows.device()});
    gpu.target_rank({logits.device(), 60, 0, tokens.device(), rows.device(), rows.device()});
    gpu.count_hits({tokens.device(), rows.device(), hits.device()});
    gpu.cross_entropy(
        {tokens.device(), rows.device(), rows.device(), rows.device(), rows.device(), 0, 60, rows.device()});
  }
  void backward(Backend& gpu) const {
    gpu.cross_entropy_backward(
        {logits.device(), 60, 0, tokens.device(), rows.device(), rows.device(), 1, 0, 60, logits.device()});
    gpu.put_rows({y.device(), picks.device(), 0, x.device()});
    gpu.swiglu_backward({y.device(), both.device(), both.device()});
    gpu.activation_backward({y.device(), x.device(), Activation::gelu_exact, y.device()});
    gpu.scale({y.device(), 2, y.device()});
    gpu.softmax_cross_entropy({logits.device(), 60, tokens.device(), 1, 0, 60, rows.device(),
                               three_rows.device(), rows.device(), logits.device()});
    gpu.norm_backward_input({.kind = NormKind::layer,
                             .dy = y.device(),
                             .x = x.device(),
                             .gain = gain.device(),
                             .statistics = statistics.device(),
                             .dx = normed.device()});
    gpu.norm_backward({NormKind::layer,
                       y.device(),
                       x.device(),
                       gain.device(),
                       statistics.device(),
                       {},
                       normed.device(),
                       dgain.device(),
                       dgain.device()});
    gpu.norm_backward_parameters(
        {NormKind::layer, y.device(), x.device(), statistics.device(), dgain.device(), dgain.device()});
    gpu.bias_backward({y.device(), dgain.device()});
    gpu.dropout({x.device(), drop, sequence, x.device()});
    gpu.embedding_backward(
        {.tokens = tokens.device(), .dy = y.device(), .first_row = 0, .dtable = dtable.device()});
    gpu.positions_backward(
        {.dy = y.device(), .sequence = sequence, .first_position = 0, .dpositions = dtable.device()});
  }
  void update(Backend& gpu) const {
    gpu.fill({flat.device(), 0});
    gpu.accumulate({x.device(), flat.device()});
    gpu.add_as_integers({flat.device(), integers.device(), marks.device()});
    gpu.from_integers({integers.device(), marks.device(), flat.device()});
    gpu.sum_squares({flat.device(), sums.device()});
    gpu.sum_spans({flat.device(), spans.device(), sums.device()});
    gpu.clip_and_scale({{.valid = 1}, totals.device(), decision.device()});
    gpu.adamw(
        {{}, decision.device(), flat.device(), flat.device(), flat.device(), flat.device(), x.device()});
    gpu.sgd({.rule = {}, .decision = decision.device(), .gradient = flat.device(), .master = flat.device()});
    const FlatSpan whole{0, 384};
    gpu.fill_of_spans({flat.device(), 0, {whole}});
    gpu.sum_squares_of_spans({flat.device(), sums.device(), {{whole, 0}}});
    gpu.sgd_of_spans(
        {{.rule = {}, .decision = decision.device(), .gradient = flat.device(), .master = flat.device()},
         {{whole, 0}}});
    gpu.adamw_of_spans(
        {{{}, decision.device(), flat.device(), flat.device(), flat.device(), flat.device(), x.device()},
         {{whole, 0}}});
    gpu.convert({flat.device(), x.device()});
  }
};

}  // namespace

TEST(GpuMemory, WhenItRunsOutTheLedgerSaysWhoHoldsIt) {
  Memory memory(Memory::Kind::device);
  const Arena values(memory, MemoryClass::values, 3 << 20);
  Exit code = Exit::done;
  const std::string text =
      error_of([&] { memory.allocate(std::size_t{2} << 30, MemoryClass::activations); }, &code);
  EXPECT_EQ(code, Exit::out_of_memory);
  EXPECT_THAT(text, ::testing::HasSubstr("this GPU would not give 2048.0 MiB for activations"));
  EXPECT_THAT(text, ::testing::ContainsRegex("values +3.0 MiB"));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the failure has been told and is not left for the next call";
  Memory limited(Memory::Kind::device, 1 << 20);
  EXPECT_THAT(error_of([&] { limited.allocate(2 << 20, MemoryClass::values); }),
              ::testing::HasSubstr("memory.device_limit is 1.0 MiB"));
}

TEST(GpuMemory, IsTakenAsPredicted) {
  Memory memory(Memory::Kind::device);
  const mindpipe::testing::Cpu cpu;
  const GpuOnHost gpu(memory, *cpu.backend);
  EXPECT_EQ(memory.allocated(), gpu_workspace_bytes);
}

TEST_F(Cuda, SaysBeforeTheCommaHowManyMultiprocessorsThereAre) {
  EXPECT_EQ(pairing().gpu->description(),
            "cuda: fibers on the host of 1 multiprocessors; kernels of our own, GPU 0 (1 GiB)");
}

TEST_F(Cuda, NothingThatAStepDoesAllocatesOrWaits) {
  const SmallStep step;
  const Tensor x = step.x.device(), y = step.y.device();
  Backend& gpu = *pairing().gpu;
  gpu.keep_marks(2);
  gpu.synchronize();
  const int before = on_host::allocations_and_waits();
  const std::vector<std::int32_t> ids(6, 1);
  gpu.upload(ids.data(), step.tokens.device());
  gpu.mark(Queue::compute);
  step.forward(gpu);
  step.backward(gpu);
  step.update(gpu);
  gpu.add({x, y, x});
  gpu.copy(x, y);
  gpu.use_queue(Queue::receive);
  gpu.wait(Queue::receive, gpu.record(Queue::compute));
  const std::uint64_t event = gpu.record(Queue::receive);
  EXPECT_FALSE(gpu.finished(event)) << "nobody has waited, so nothing has been done";
  gpu.use_queue(Queue::compute);
  gpu.add({x, y, x});  // an event that has not happened is no failure of this
  EXPECT_EQ(on_host::allocations_and_waits(), before);
  gpu.synchronize();
  EXPECT_TRUE(gpu.finished(event));
}

TEST(GpuErrors, SayWhatWasCalledWhatCameBackAndWhatToDo) {
  Exit code = Exit::done;
  EXPECT_THAT(error_of([] { MP_CUDA(cudaErrorNoKernelImageForDevice); }, &code),
              ::testing::HasSubstr("make cuda"));
  EXPECT_EQ(code, Exit::bad_configuration);
  EXPECT_THAT(error_of([] { MP_CUDA(cudaErrorMemoryAllocation); }, &code),
              ::testing::HasSubstr("train.micro_batch"));
  EXPECT_EQ(code, Exit::out_of_memory);
  EXPECT_THAT(error_of([] { MP_CUDA(cudaErrorInvalidValue); }, &code),
              ::testing::HasSubstr("compute-sanitizer"));
  EXPECT_EQ(code, Exit::internal);
}

TEST(Launch, CoversMoreElementsThan32BitsCount) {
  const std::int64_t many = (std::int64_t{1} << 34) + 1;
  EXPECT_EQ(cuda::grid_of_groups(many, 8).x, (std::int64_t{1} << 34) / 8 / 256 + 1);
  EXPECT_EQ(cuda::grid_of_row_groups(many, 9, 8).x, (2 * many + 255) / 256);
  EXPECT_EQ(cuda::quotient(many * 7 + 6, 7), many);
  EXPECT_EQ(cuda::quotient(4000000006, 7), 571428572);
}

TEST(Launch, EveryElementBelongsToOneThread) {
  Memory memory(Memory::Kind::device);
  const mindpipe::testing::Cpu cpu;
  GpuOnHost gpu(memory, *cpu.backend);
  cudaStream_t stream = nullptr;
  MP_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
  for (bool wide : {false, true})
    for (std::int64_t rows : {1, 3, 300})
      for (std::int64_t cols : {4, 7, 64, 1028}) {
        const std::int64_t count = rows * cols, guard = 16;
        std::vector<int> flat(static_cast<std::size_t>(count + guard)), in_rows = flat, in_block = flat;
        const std::vector<float> numbers(flat.size());
        std::vector<int> want(flat.size());
        std::fill_n(want.begin(), count, 1);
        cuda::launch(stream, cuda::grid_of_groups(count, 4), mark_groups, flat.data(), count, wide);
        cuda::launch(stream, cuda::grid_of_row_groups(rows, cols, 4), mark_row_groups, in_rows.data(), rows,
                     cols, wide && cols % 4 == 0);
        cuda::launch(stream, cuda::Grid{1, 64}, mark_groups_of_block, numbers.data(), in_block.data(), count,
                     wide);
        MP_CUDA(cudaStreamSynchronize(stream));
        EXPECT_EQ(flat, want) << rows << " x " << cols;
        EXPECT_EQ(in_rows, want) << rows << " x " << cols;
        EXPECT_EQ(in_block, want) << rows << " x " << cols;
      }
  MP_CUDA(cudaStreamDestroy(stream));
}
