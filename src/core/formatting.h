#pragma once
#include <fmt/format.h>

// With fmt 9 every file that formats would compile fmt's formatting once more. It is in fmt's library.
#if FMT_VERSION < 100000 && !defined(FMT_HEADER_ONLY)
namespace fmt::detail {
extern template void vformat_to<char>(buffer<char>&, basic_string_view<char>,
                                      basic_format_args<buffer_context<char>>, locale_ref);
}
#endif
