#pragma once
#include <cstddef>
#include <string_view>
#ifdef MINDPIPE_MUTATIONS
#include <map>
#include <string>
#endif

namespace mindpipe {

// Places where a test may leave a collective, a message or a step of a sum out, to see that tests notice.
// Product code asks is_left_out(...) there, which is constantly false outside the build of such tests.
#ifdef MINDPIPE_MUTATIONS
/// Chooses what is left out: the named collective ("tensor.sum", "data.sum_scatter"),
/// message ("message.1.0>1": payload 1 from rank 0 to rank 1) or step of a sum ("gradients.fold") is then
/// left out on this rank, so that a test which does not notice is known to be blind. `number`: only that call
/// of those that follow, from 0; -1: all. An empty name, the default, leaves nothing out.
void set_mutation(std::string_view name, int number = -1);
/// How often each name was asked for since the last set_mutation.
const std::map<std::string, int>& mutable_calls();
/// Whether this call of `operation` on an axis of this name is to be left out.
bool is_left_out(std::string_view axis, std::string_view operation);
/// Whether this message is to be left out; asked once at each end.
bool is_message_left_out(int from, int to, int payload);
/// Fills what nobody reads any more with numbers that are none.
void forget(void* begin, std::size_t bytes);
#else
constexpr bool is_left_out(std::string_view, std::string_view) { return false; }
constexpr bool is_message_left_out(int, int, int) { return false; }
constexpr void forget(void*, std::size_t) {}
#endif

}  // namespace mindpipe
