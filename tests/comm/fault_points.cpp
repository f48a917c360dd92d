#include "comm/fault_points.h"

#include <fmt/core.h>

#include <cstring>

namespace mindpipe {
namespace {

struct Mutation {
  std::string name;
  int number = -1;
  std::map<std::string, int> calls;

  bool leaves_out(const std::string& call) {
    const int at = calls[call]++;
    return call == name && (number < 0 || at == number);
  }
};

Mutation& mutation() {
  static Mutation mutation;
  return mutation;
}

}  // namespace

void set_mutation(std::string_view name, int number) { mutation() = {std::string(name), number, {}}; }
const std::map<std::string, int>& mutable_calls() { return mutation().calls; }
bool is_left_out(std::string_view axis, std::string_view operation) {
  return mutation().leaves_out(fmt::format("{}.{}", axis, operation));
}
bool is_message_left_out(int from, int to, int payload) {
  return mutation().leaves_out(fmt::format("message.{}.{}>{}", payload, from, to));
}

void forget(void* begin, std::size_t bytes) {
  constexpr int all_bits = 0xff;  // no number in f32, f64 and bf16
  std::memset(begin, all_bits, bytes);
}

}  // namespace mindpipe
