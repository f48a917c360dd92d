#pragma once
#include <string_view>

namespace mindpipe {

#ifdef MINDPIPE_MUTATIONS
/// For tests of the tests, in their build only: the named collective ("tensor.sum", "data.reduce") leaves out its exchange on this rank, so
/// that a test which does not notice is known to be blind. An empty name, the default, leaves nothing out.
void set_mutation(std::string_view name);
/// Whether the collective `operation` on an axis of this name is the one to leave out.
bool is_mutated(std::string_view axis, std::string_view operation);
#else
constexpr bool is_mutated(std::string_view, std::string_view) { return false; }
#endif

}  // namespace mindpipe
