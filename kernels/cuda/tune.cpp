#include <algorithm>
#include <optional>

#include "cuda/cuda_backend.h"
#include "cuda/error.h"
#include "hardware.h"

namespace mindpipe {
namespace {

using cuda::AlgorithmWords;
using cuda::ProductKey;
using cuda::ProductLibrary;

constexpr int most_proposals = 16, warm_up = 3, repeats = 9;

/// Products as `linear` asks for them: fused where the library can, else sums of its runs of rows.
std::vector<ProductKey> keys_of(const ProductCall& call, CudaBackend& backend) {
  const int processors = backend.processors();
  if (const auto fused = cuda::fused_key(call, processors); fused && backend.products().has(*fused))
    return {*fused};
  const std::int64_t run = cuda::rows_at_once(call, ProductLibrary::sums_bytes), rest = call.n % run;
  std::vector<ProductKey> keys{cuda::sums_key(call, run, processors)};
  if (rest != 0) keys.push_back(cuda::sums_key(call, rest, processors));
  return keys;
}

/// A million normal numbers, which large operands repeat: drawing those of GPT-2 takes minutes.
const std::vector<float>& some_normals() {
  static const std::vector<float> numbers = [] {
    std::vector<float> drawn(std::size_t{1} << 20);
    RandomStream{.seed = 1, .purpose = purpose_of("operands")}.normals(0, drawn.size(), 1, drawn.data());
    return drawn;
  }();
  return numbers;
}

/// Times one product with operands of its own. Their numbers are normal: zeros are multiplied faster.
class Trial {
 public:
  Trial(CudaBackend& backend, const ProductKey& key)
      : backend_(backend), key_(key), layout_(cuda::layout_of(key)) {
    a_ = operand(layout_.a, "a");
    b_ = operand(layout_.b, "b");
    d_ = operand(layout_.d, "d");
    before_ = operand(layout_.d, "before");
    bias_ = operand({key.result, layout_.d.rows, 1}, "bias");
    workspace_ = Arena(backend.memory(), MemoryClass::workspace, ProductLibrary::workspace_bytes);
    for (auto& event : {&start_, &end_}) MP_CUDA(cudaEventCreate(event->receive()));
    backend.synchronize();  // operands have arrived
  }

  /// Median seconds with an algorithm; none where the library refuses to run it.
  std::optional<double> seconds(const AlgorithmWords& algorithm) {
    backend_.products().choose(key_, algorithm);
    std::vector<float> times;
    for (int i = -warm_up; i < repeats; ++i) {
      MP_CUDA(cudaEventRecord(start_.get(), nullptr));
      if (!backend_.products().try_run(key_, {a_.data, b_.data, d_.data, bias_.data, before_.data},
                                       workspace_.address_of(0), nullptr))
        return {};
      MP_CUDA(cudaEventRecord(end_.get(), nullptr));
      MP_CUDA(cudaEventSynchronize(end_.get()));
      float milliseconds = 0;
      MP_CUDA(cudaEventElapsedTime(&milliseconds, start_.get(), end_.get()));
      if (i >= 0) times.push_back(milliseconds);
    }
    std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
    return static_cast<double>(times[repeats / 2]) * 1e-3;
  }

 private:
  Tensor operand(const cuda::ColumnMatrix& like, const char* name) {
    const Shape shape{like.rows * like.cols};
    std::vector<float> numbers(static_cast<std::size_t>(shape.count()));
    const std::vector<float>& some = some_normals();
    for (std::size_t i = 0, at = purpose_of(name) % some.size(); i < numbers.size();) {
      const std::size_t count = std::min(some.size() - at, numbers.size() - i);
      std::copy_n(some.begin() + static_cast<std::ptrdiff_t>(at), count,
                  numbers.begin() + static_cast<std::ptrdiff_t>(i));
      i += count;
      at = 0;
    }
    Arena& block = blocks_.emplace_back(backend_.memory(), MemoryClass::workspace,
                                        bytes_for(shape, like.dtype) + bytes_for(shape, DType::f32));
    const Tensor to = block.take(shape, like.dtype), from = block.take(shape, DType::f32);
    backend_.upload(numbers.data(), from);
    backend_.convert({from, to});
    return to;
  }

  CudaBackend& backend_;
  ProductKey key_;
  cuda::ProductLayout layout_;
  std::vector<Arena> blocks_;
  Tensor a_, b_, d_, before_, bias_;
  Arena workspace_;
  Handle<cuda::EventTraits> start_, end_;
};

}  // namespace

std::string tuned_products(const std::vector<ProductCall>& calls, int device, int reserved,
                           const std::function<void(const std::string&)>& say) {
  Memory memory(Memory::Kind::device);
  CudaBackend backend(memory, device, "", {}, reserved);
  cuda::TunedTable table{backend.gpu(), backend.products().version(), {}};
  for (const ProductCall& call : calls)
    for (const ProductKey& key : keys_of(call, backend)) {
      if (table.algorithms.contains(key)) continue;
      Trial trial(backend, key);
      double first = 0, least = 0;
      for (const AlgorithmWords& algorithm : backend.products().proposals(key, most_proposals)) {
        const std::optional<double> seconds = trial.seconds(algorithm);
        if (first == 0) first = seconds.value_or(0);
        if (!seconds || (least != 0 && *seconds >= least)) continue;
        least = *seconds;
        table.algorithms[key] = algorithm;
      }
      say(fmt::format("{}: {:.1f} us, {:.1f} us with the library's first proposal", to_string(key),
                      least * 1e6, first * 1e6));
    }
  return to_string(table);
}

}  // namespace mindpipe
