#include "kernels/made_cublasLt/product.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace made_cublasLt {
namespace {

std::int64_t bytes_of(int type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

double load(const void* from, std::int64_t at, int type) {
  if (type == CUDA_R_64F) return static_cast<const double*>(from)[at];
  if (type == CUDA_R_32F) return static_cast<const float*>(from)[at];
  const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(from)[at]} << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Rounds to the nearest, ties to even.
void store(void* to, std::int64_t at, int type, double value) {
  if (type == CUDA_R_64F) {
    static_cast<double*>(to)[at] = value;
    return;
  }
  const auto single = static_cast<float>(value);
  if (type == CUDA_R_32F) {
    static_cast<float*>(to)[at] = single;
    return;
  }
  std::uint32_t bits = 0;
  std::memcpy(&bits, &single, sizeof bits);
  if (std::isnan(single)) bits |= 0x400000;
  else bits += 0x7fff + (bits >> 16 & 1);
  static_cast<std::uint16_t*>(to)[at] = static_cast<std::uint16_t>(bits >> 16);
}

/// A factor of TF32, ten bits behind the point.
float in_tf32(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0xfff + (bits >> 13 & 1)) & ~std::uint32_t{0x1fff};
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr float slope = 0.7978845608028654f, bend = 0.044715f;
float gelu(float x) { return 0.5f * x * (1 + std::tanh(slope * (x + bend * x * x * x))); }
float gelu_derivative(float x) {
  const float t = std::tanh(slope * (x + bend * x * x * x));
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope * (1 + 3 * bend * x * x);
}

/// What is multiplied for each row of a product, or for each column: `depth` numbers that follow one another.
template <class Number>
std::vector<Number> factors(const Matrix& matrix, const void* from, bool depth_is_rows, Way way) {
  const std::int64_t count = depth_is_rows ? matrix.cols : matrix.rows,
                     depth = depth_is_rows ? matrix.rows : matrix.cols;
  std::vector<Number> all(static_cast<std::size_t>(count * depth));
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int64_t at = depth_is_rows ? i * matrix.leading + k : k * matrix.leading + i;
      auto& to = all[static_cast<std::size_t>(i * depth + k)];
      to = static_cast<Number>(load(from, at, matrix.type));
      if (way == Way::in_tf32) to = static_cast<Number>(in_tf32(static_cast<float>(to)));
    }
  return all;
}

/// Sum of the products of two rows of factors, one after the other.
template <class Number>
Number sum(const Number* a, const Number* b, std::int64_t depth, Way way) {
  const auto of_part = [&](std::int64_t first, std::int64_t end) {
    Number total = 0;
    for (std::int64_t k = first; k < end; ++k) total += a[k] * b[k];
    return total;
  };
  if (way == Way::in_halves) return of_part(0, depth / 2) + of_part(depth / 2, depth);
  if (way != Way::without_workspace) return of_part(0, depth);
  Number total = 0;  // from the last to the first
  for (std::int64_t k = depth; k-- > 0;) total += a[k] * b[k];
  return total;
}

/// What becomes of a sum before it is rounded.
float finished(const Product& p, std::int64_t row, std::int64_t col, float x) {
  const Description& d = p.description;
  if (d.has_bias()) x += static_cast<float>(load(d.bias, row, p.d.type));
  const std::int64_t before = col * d.before_leading + row;
  if (d.epilogue == CUBLASLT_EPILOGUE_DGELU)
    return x * gelu_derivative(static_cast<float>(load(d.before, before, p.d.type)));
  if (d.has_before()) store(d.before, before, p.d.type, x);
  if ((d.epilogue & CUBLASLT_EPILOGUE_RELU) != 0) return x > 0 ? x : 0;
  return (d.epilogue & CUBLASLT_EPILOGUE_GELU) != 0 ? gelu(x) : x;
}

bool is_known(std::uint32_t epilogue) {
  const std::uint32_t without_bias = epilogue & ~std::uint32_t{CUBLASLT_EPILOGUE_BIAS};
  return epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_BIAS ||
         without_bias == CUBLASLT_EPILOGUE_RELU || without_bias == CUBLASLT_EPILOGUE_GELU ||
         without_bias == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_DGELU;
}

bool types_fit(const Product& p) {
  const Description& d = p.description;
  if (p.a.type != p.b.type || p.c.type != p.d.type) return false;
  if (d.compute == CUBLAS_COMPUTE_64F)
    return d.scale == CUDA_R_64F && p.a.type == CUDA_R_64F && p.d.type == CUDA_R_64F;
  return d.compute == CUBLAS_COMPUTE_32F && d.scale == CUDA_R_32F &&
         (p.a.type == CUDA_R_16BF || p.a.type == CUDA_R_32F) &&
         (p.d.type == CUDA_R_32F || p.d.type == p.a.type);
}

}  // namespace

std::int64_t Matrix::bytes() const { return ((cols - 1) * leading + rows) * bytes_of(type); }

std::string Product::fault(cublasStatus_t& status) const {
  const Description& d = description;
  status = CUBLAS_STATUS_INVALID_VALUE;
  if (d.mark != Description::is_one) return "a description that was not initialised";
  for (const Matrix* matrix : {&a, &b, &c, &this->d}) {
    if (matrix->mark != Matrix::is_one) return "a layout that was not initialised";
    if (matrix->rows < 1 || matrix->cols < 1) return "a matrix without elements";
    if (matrix->leading < matrix->rows) return "columns that overlap: a leading dimension below the rows";
  }
  const bool turns_a = d.transposed_a != CUBLAS_OP_N, turns_b = d.transposed_b != CUBLAS_OP_N;
  if ((turns_a ? a.cols : a.rows) != this->d.rows || (turns_b ? b.rows : b.cols) != this->d.cols ||
      (turns_b ? b.cols : b.rows) != depth() || c.rows != this->d.rows || c.cols != this->d.cols)
    return "matrices whose rows and columns do not fit together";
  if (d.has_bias() && d.bias == nullptr) return "an epilogue with a bias, and no pointer to one";
  if (d.has_before()) {
    if (d.before == nullptr) return "an epilogue with an auxiliary matrix, and no pointer to one";
    if (d.before_leading % 8 != 0 || d.before_leading < this->d.rows)
      return "a leading dimension of the auxiliary matrix that is no multiple of 8, or below the rows of d";
  }
  status = CUBLAS_STATUS_NOT_SUPPORTED;
  if (!types_fit(*this)) return "types of operands, sums and result that do not stand in the table of types";
  if (!is_known(d.epilogue)) return "an epilogue that this program does not use";
  if (d.compute == CUBLAS_COMPUTE_64F && d.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return "an epilogue of sums in f64";
  status = CUBLAS_STATUS_SUCCESS;
  return "";
}

namespace {

/// Whether there is memory at an address: a place-holder that tells an alignment is none.
bool is_there(const void* address) {
  constexpr std::uintptr_t page = 4096;
  unsigned char resident = 0;
  return mincore(reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) / page * page), page,
                 &resident) == 0;
}

}  // namespace

std::uint16_t alignment_of(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint16_t>(at == 0 ? 256 : std::min<std::uintptr_t>(at & -at, 256));
}

std::string fault_of_call(const Product& p, const Algorithm& algorithm, const Addresses& at,
                          const void* workspace, std::size_t bytes) {
  if (algorithm.mark != Algorithm::is_one || algorithm.problem != p.hash())
    return "an algorithm that was found for another product";
  const void* operands[] = {at.a, at.b, at.c, at.d};
  for (int i = 0; i < 4; ++i)
    if (operands[i] == nullptr || alignment_of(operands[i]) < std::min<int>(algorithm.alignment[i], 256))
      return "an operand that is nowhere, or not as aligned as its algorithm was asked for";
  const Description& d = p.description;
  if (d.has_bias() && alignment_of(d.bias) < algorithm.of_bias)
    return "a bias that is less aligned than was said";
  if (d.has_before() && (alignment_of(d.before) < algorithm.of_before || alignment_of(d.before) < 16))
    return "an auxiliary matrix that is less aligned than was said";
  if (algorithm.workspace > bytes || (algorithm.workspace > 0 && alignment_of(workspace) < 256) ||
      (algorithm.workspace > 0 && workspace == nullptr))
    return "a workspace that is too small, or not aligned to 256 bytes";
  for (const void* address :
       {at.a, at.b, at.c, static_cast<const void*>(at.d), d.bias, static_cast<const void*>(d.before)})
    if (address != nullptr && !is_there(address)) return "an address where there is no memory";
  const auto overlap = [&](const void* other, std::int64_t size) {
    const auto first = reinterpret_cast<std::uintptr_t>(other), d_at = reinterpret_cast<std::uintptr_t>(at.d);
    return first < d_at + static_cast<std::uintptr_t>(p.d.bytes()) &&
           d_at < first + static_cast<std::uintptr_t>(size);
  };
  if (overlap(at.a, p.a.bytes()) || overlap(at.b, p.b.bytes())) return "a result that lies over an operand";
  if (at.c != at.d && overlap(at.c, p.c.bytes())) return "a result that lies over a part of c";
  if (at.c == at.d && (p.c.type != p.d.type || p.c.leading != p.d.leading))
    return "a result in place of c whose layout is another one";
  return "";
}

std::uint64_t Product::hash() const {
  std::uint64_t hash = 1469598103934665603u;
  const auto add = [&](std::int64_t x) { hash = (hash ^ static_cast<std::uint64_t>(x)) * 1099511628211u; };
  for (const Matrix* matrix : {&a, &b, &c, &d})
    for (const std::int64_t x : {std::int64_t{matrix->type}, matrix->rows, matrix->cols, matrix->leading})
      add(x);
  for (const std::int64_t x : {std::int64_t{description.compute}, std::int64_t{description.scale},
                               std::int64_t{description.transposed_a}, std::int64_t{description.transposed_b},
                               std::int64_t{description.epilogue}, description.before_leading})
    add(x);
  return hash;
}

namespace {

template <class Number, class Finish>
void compute_in(const Product& p, const Addresses& at, Way way, const Finish& finish) {
  const bool turns_a = p.description.transposed_a != CUBLAS_OP_N,
             turns_b = p.description.transposed_b != CUBLAS_OP_N;
  const std::vector<Number> a = factors<Number>(p.a, at.a, turns_a, way),
                            b = factors<Number>(p.b, at.b, !turns_b, way);
  const std::int64_t depth = p.depth();
  const auto alpha = static_cast<Number>(at.alpha), beta = static_cast<Number>(at.beta);
  for (std::int64_t col = 0; col < p.d.cols; ++col)
    for (std::int64_t row = 0; row < p.d.rows; ++row) {
      Number x = alpha * sum(a.data() + row * depth, b.data() + col * depth, depth, way);
      if (at.beta != 0) x += beta * static_cast<Number>(load(at.c, col * p.c.leading + row, p.c.type));
      store(at.d, col * p.d.leading + row, p.d.type, finish(row, col, x));
    }
}

}  // namespace

void compute(const Product& p, const Addresses& at, Way way) {
  if (p.description.compute == CUBLAS_COMPUTE_64F)
    return compute_in<double>(p, at, way, [](std::int64_t, std::int64_t, double x) { return x; });
  compute_in<float>(p, at, way,
                    [&](std::int64_t row, std::int64_t col, float x) { return finished(p, row, col, x); });
}

}  // namespace made_cublasLt
