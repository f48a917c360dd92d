#include "cpu/simd/attention_by_words.h"
#include "cpu/simd/attention_plain.h"
#include "cpu/simd/attention_short.h"

namespace mindpipe::MINDPIPE_ISA {

constexpr AttentionKernels in_f64{plain::tile_queries, plain::forward_scratch, plain::backward_scratch,
                                  plain::forward<double>, plain::backward<double>};
const AttentionByType attention_kernels{
    {in_f64, tile::kernels_of<tile::Singles<float>>, tile::kernels_of<tile::Singles<std::uint16_t>>}};

template <class T>
constexpr AttentionKernels of_few{few_queries, few::scratch_bytes, nullptr, few::forward<T>, nullptr};
const AttentionByType few_attention_kernels{{in_f64, of_few<float>, of_few<std::uint16_t>}};

}  // namespace mindpipe::MINDPIPE_ISA
