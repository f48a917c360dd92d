#pragma once
#include <string_view>
#ifdef MINDPIPE_MUTATIONS
#include <map>
#include <string>
#endif

namespace mindpipe {

#ifdef MINDPIPE_MUTATIONS
/// For tests of the tests, in their build only: the named collective ("tensor.sum", "data.sum_scatter"),
/// message ("message.1.0>1": payload 1 from rank 0 to rank 1) or step of a sum ("gradients.fold") is left out
/// on this rank, so that a test which does not notice is known to be blind. `number`: only that call of those
/// that follow, from 0; -1: all. An empty name, the default, leaves nothing out.
void set_mutation(std::string_view name, int number = -1);
/// How often each was asked for since the last set_mutation.
const std::map<std::string, int>& mutable_calls();
/// Whether this call of `operation` on an axis of this name is to be left out.
bool is_mutated(std::string_view axis, std::string_view operation);
/// The same for a message, asked once at each end.
bool is_mutated_message(int from, int to, int payload);
#else
constexpr bool is_mutated(std::string_view, std::string_view) { return false; }
constexpr bool is_mutated_message(int, int, int) { return false; }
#endif

}  // namespace mindpipe
