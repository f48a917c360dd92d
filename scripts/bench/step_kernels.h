#pragma once
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "backend.h"

/// The operations of a training step of GPT-2, one kind at a time, on operands of the step's shapes.
namespace mindpipe::bench {

/// Sizes of one micro-batch of a model; the defaults are GPT-2 124M with 32 sequences.
struct Sizes {
  std::int64_t samples = 32, sequence = 1024, width = 768, heads = 12, layers = 12, vocabulary = 50304,
               token_chunk = 512;  ///< tokens that the classifier takes at once
  DType dtype = DType::bf16;
  std::int64_t rows() const { return samples * sequence; }
  std::int64_t parameters() const {
    return vocabulary * width + sequence * width + layers * (12 * width * width + 13 * width) + 2 * width;
  }
};

/// One tensor for each set of operands: sets are used in turn, so that no operand waits in a cache for the
/// next call.
using Many = std::vector<Tensor>;
inline constexpr int sets = 3;

/// Operands of one kernel; their memory is given back with this object.
class Footprint {
 public:
  explicit Footprint(Backend& backend) : backend_(backend) {}
  Many empty(const Shape& shape, DType dtype);
  Many normal(const Shape& shape, DType dtype, double deviation = 1);
  Many constant(const Shape& shape, DType dtype, double value);
  Many ids(std::int64_t count, std::int64_t below);  ///< i32, each from 0 to below - 1
  Backend& backend() { return backend_; }

 private:
  Backend& backend_;
  std::deque<Arena> blocks_;
};

/// One call with a set of operands.
using Call = std::function<void(int set)>;

/// One kind of call, how often a micro-batch makes it (an update: a step), and the operations of the tensor
/// cores and the bytes that it needs, with each operand read or written once.
struct Kernel {
  std::string name, shape;
  double calls = 1, operations = 0, bytes = 0;
  std::function<Call(Footprint&)> prepare;
};

inline double of(std::int64_t n) { return static_cast<double>(n); }
inline double element(DType dtype) { return static_cast<double>(bytes_of(dtype)); }

std::vector<Kernel> kernels_of_a_step(const Sizes& sizes);
std::vector<Kernel> products_of(const Sizes& sizes);  ///< products of blocks and of the classifier
std::vector<Kernel> attention_of(const Sizes& sizes);
std::vector<Kernel> rows_of(const Sizes& sizes);  ///< norms, sums over rows, embedding, softmax
std::vector<Kernel> updates_of(const Sizes& sizes);
/// A token table's gradient as whole numbers, as a supernet adds it up.
std::vector<Kernel> integers_of(const Sizes& sizes);
/// Depthwise convolutions over rows and gates, which GPT-2's step does not call.
std::vector<Kernel> convolutions_of(const Sizes& sizes);
/// Windows, batch norm and pools on square pictures of `width` channels.
std::vector<Kernel> kernels_of_pictures(const Sizes& sizes, std::int64_t side);

/// Kernel that nothing on this device exceeds in operations a second: one large product of the dtype.
Kernel large_product(std::int64_t extent, DType dtype);
/// Kernel that nothing on this device exceeds in bytes a second, read and written: a copy within its memory.
Kernel large_copy(std::int64_t bytes);

/// Seconds of one call among many in a row: the median over rounds, each of `least_seconds` or more.
double seconds_of(const Kernel& kernel, Backend& backend, double least_seconds);

}  // namespace mindpipe::bench
