#include "operations/attention.h"

#include <cmath>

namespace mindpipe {
namespace {

/// Checks heads of `samples` samples with at least `rows` rows each and says where they lie.
HeadsView view_of(const Heads& heads, const char* name, std::int64_t samples, std::int64_t rows,
                  std::int64_t width, DType dtype) {
  const Shape& shape = heads.data.shape;
  MP_CHECK(heads.data && shape.rank == 4,
           "attention: {} is {} (a tensor [samples, rows, heads, width] is needed)", name, to_string(shape));
  MP_CHECK(heads.data.dtype == dtype, "attention: {} is {} beside operands of {}", name,
           name_of(heads.data.dtype), name_of(dtype));
  MP_CHECK(shape[0] == samples && shape[1] >= rows && shape[3] == width,
           "attention: {} is {} ({} samples of at least {} rows, heads of width {} are needed)", name,
           to_string(shape), samples, rows, width);
  MP_CHECK(heads.first >= 0 && heads.count > 0 && heads.first + heads.count <= shape[2],
           "attention: heads {} to {} of {} {}", heads.first, heads.first + heads.count, name,
           to_string(shape));
  const std::int64_t row = shape[2] * width;
  return {static_cast<std::byte*>(heads.data.data) +
              static_cast<std::size_t>(heads.first * width) * bytes_of(dtype),
          shape[1] * row, row};
}

/// Says where the heads of a tensor lie that holds the heads of the call and nothing else.
HeadsView view_of(const Tensor& tensor, const char* name, const AttentionCall& call, DType dtype) {
  MP_CHECK(tensor.count() == call.samples * call.queries * call.query_heads * call.width,
           "attention: {} is {} ([{}, {}, {}, {}] is needed)", name, to_string(tensor.shape), call.samples,
           call.queries, call.query_heads, call.width);
  MP_CHECK(tensor.dtype == dtype, "attention: {} is {} beside operands of {}", name, name_of(tensor.dtype),
           name_of(dtype));
  const std::int64_t row = call.query_heads * call.width;
  return {tensor.data, call.queries * row, row};
}

}  // namespace

AttentionCall AttentionOperands::checked() const {
  const DType dtype = q.data.dtype;
  MP_CHECK(dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16,
           "attention: no arithmetic on {}", name_of(dtype));
  MP_CHECK(parameters.queries > 0 && parameters.keys > 0,
           "attention: {} queries, {} keys (at least 1 of each)", parameters.queries, parameters.keys);
  MP_CHECK(parameters.scale > 0, "attention: scale {} (more than 0)", parameters.scale);
  MP_CHECK(k.count > 0 && k.count == v.count && q.count % k.count == 0,
           "attention: {} query heads on {} key and {} value heads (equal groups are needed)", q.count,
           k.count, v.count);
  AttentionCall call;
  call.samples = q.data.shape[0];
  call.width = q.data.shape[3];
  call.query_heads = q.count;
  call.key_heads = k.count;
  call.queries = parameters.queries;
  call.keys = parameters.keys;
  call.causal = parameters.causal;
  call.scale = static_cast<double>(parameters.scale);
  call.q = view_of(q, "q", call.samples, call.queries, call.width, dtype);
  call.k = view_of(k, "k", call.samples, call.keys, call.width, dtype);
  call.v = view_of(v, "v", call.samples, call.keys, call.width, dtype);
  call.out = view_of(out, "out", call, dtype);
  if (parameters.key_lengths) {
    MP_CHECK(parameters.key_lengths.dtype == DType::i32 && parameters.key_lengths.count() == call.samples,
             "attention: key lengths are {} {} (i32 [{}] is needed)", name_of(parameters.key_lengths.dtype),
             to_string(parameters.key_lengths.shape), call.samples);
    call.key_lengths = parameters.key_lengths.as<std::int32_t>();
  }
  MP_CHECK(log_sum.count() == call.samples * call.query_heads * call.queries,
           "attention: log_sum is {} ([{}, {}, {}] is needed)", to_string(log_sum.shape), call.samples,
           call.query_heads, call.queries);
  MP_CHECK(log_sum.dtype == DType::f32 || (log_sum.dtype == DType::f64 && dtype == DType::f64),
           "attention: log_sum is {} beside operands of {}", name_of(log_sum.dtype), name_of(dtype));
  call.log_sum = log_sum.data;
  call.log_sum_is_f64 = log_sum.dtype == DType::f64;
  const Dropout& dropout = parameters.dropout;
  const double probability = static_cast<double>(dropout.probability);
  MP_CHECK(probability >= 0 && probability < 1, "attention: dropout probability {} (at least 0, less than 1)",
           probability);
  const auto key = dropout.stream.key();
  call.key[0] = key[0];
  call.key[1] = key[1];
  call.step = dropout.stream.step;
  call.sample = dropout.stream.sample;
  call.threshold = static_cast<std::uint32_t>(std::llround(probability * 0x1p32));
  call.kept_scale = 1.0 / (1.0 - probability);
  call.head_offset = parameters.head_offset;
  return call;
}

AttentionCall AttentionBackwardOperands::checked() const {
  AttentionCall call = forward().checked();
  const DType dtype = q.data.dtype;
  MP_CHECK(dq.count == q.count && dk.count == k.count && dv.count == v.count,
           "attention_backward: {}, {}, {} heads of gradients for {}, {}, {}", dq.count, dk.count, dv.count,
           q.count, k.count, v.count);
  call.dout = view_of(dout, "dout", call, dtype);
  call.dq = view_of(dq, "dq", call.samples, call.queries, call.width, dtype);
  call.dk = view_of(dk, "dk", call.samples, call.keys, call.width, dtype);
  call.dv = view_of(dv, "dv", call.samples, call.keys, call.width, dtype);
  return call;
}

}  // namespace mindpipe
