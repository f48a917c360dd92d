#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "arithmetic.h"

namespace mindpipe {

namespace fields {
/// Becomes a field of any type.
struct Any {
  template <class T>
  operator T() const;
};
template <class T, std::size_t... place>
constexpr bool are(std::index_sequence<place...>) {
  return requires { T{(static_cast<void>(place), Any{})...}; };
}
/// How many fields an aggregate has, at most `most`.
template <class T, std::size_t most = 16>
constexpr std::size_t count() {
  if constexpr (most == 0 || are<T>(std::make_index_sequence<most>())) return most;
  else return count<T, most - 1>();
}
/// Calls see(field) for each field.
template <class T, class See>
void each(const T& of, const See& see) {
  constexpr std::size_t n = count<T>();
#define MINDPIPE_FIELDS(number, ...)                                   \
  if constexpr (n == number) {                                         \
    const auto& [__VA_ARGS__] = of;                                    \
    const auto see_all = [&](const auto&... all) { (see(all), ...); }; \
    see_all(__VA_ARGS__);                                              \
  }
  MINDPIPE_FIELDS(1, a)
  MINDPIPE_FIELDS(2, a, b)
  MINDPIPE_FIELDS(3, a, b, c)
  MINDPIPE_FIELDS(4, a, b, c, d)
  MINDPIPE_FIELDS(5, a, b, c, d, e)
  MINDPIPE_FIELDS(6, a, b, c, d, e, f)
  MINDPIPE_FIELDS(7, a, b, c, d, e, f, g)
  MINDPIPE_FIELDS(8, a, b, c, d, e, f, g, h)
  MINDPIPE_FIELDS(9, a, b, c, d, e, f, g, h, i)
  MINDPIPE_FIELDS(10, a, b, c, d, e, f, g, h, i, j)
  MINDPIPE_FIELDS(11, a, b, c, d, e, f, g, h, i, j, k)
  MINDPIPE_FIELDS(12, a, b, c, d, e, f, g, h, i, j, k, l)
  MINDPIPE_FIELDS(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  MINDPIPE_FIELDS(14, a, b, c, d, e, f, g, h, i, j, k, l, m, o)
#undef MINDPIPE_FIELDS
  static_assert(n > 0 && n <= 14, "operands of too many fields");
}
}  // namespace fields

/// The tensors among operands, in the order in which they are declared.
template <class Operands>
std::vector<Tensor> tensors_of(const Operands& operands) {
  std::vector<Tensor> tensors;
  fields::each(operands, [&](const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, Tensor>) tensors.push_back(field);
    if constexpr (std::is_same_v<Field, Heads>) tensors.push_back(field.data);
    if constexpr (std::is_same_v<Field, AttentionParameters>) tensors.push_back(field.key_lengths);
  });
  return tensors;
}

}  // namespace mindpipe
