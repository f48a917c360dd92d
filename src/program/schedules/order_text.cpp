#include "program/schedules/order_text.h"

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <map>
#include <sstream>
#include <utility>

#include "core/check.h"
#include "core/sha256.h"
#include "core/text.h"
#include "program/schedules/pass_clock.h"

namespace mindpipe {
namespace {

constexpr std::string_view explanation =
    "# The order of passes that was searched (schedule.kind: searched), a stage a line: F forward,\n"
    "# B backward, I and W its halves for inputs and weights; chunk.micro-batch. A start that asks the\n"
    "# same takes it as it is.\n";
constexpr std::string_view asked = "asked ";
constexpr std::pair<char, ActionKind> letters[] = {{'F', ActionKind::forward},
                                                   {'B', ActionKind::backward},
                                                   {'I', ActionKind::backward_input},
                                                   {'W', ActionKind::backward_weight}};

std::optional<Pass> pass_of(std::string_view word) {
  Pass pass;
  const char* const end = word.data() + word.size();
  for (const auto& [letter, kind] : letters) {
    if (word.empty() || word.front() != letter) continue;
    pass.kind = kind;
    const auto chunk = std::from_chars(word.data() + 1, end, pass.chunk);
    if (chunk.ec != std::errc() || chunk.ptr == end || *chunk.ptr != '.') return {};
    const auto micro_batch = std::from_chars(chunk.ptr + 1, end, pass.micro_batch);
    if (micro_batch.ec != std::errc() || micro_batch.ptr != end) return {};
    return pass;
  }
  return {};
}

std::string word_of(const Pass& pass) {
  for (const auto& [letter, kind] : letters)
    if (kind == pass.kind) return fmt::format("{}{}.{}", letter, pass.chunk, pass.micro_batch);
  fail(Exit::internal, "a pass of another kind in an order");
}

/// The passes of a stage as they come: each once, micro-batches of a chunk ascending, behind what they read.
class PassesOfStage {
 public:
  PassesOfStage(int stage, const OrderRequest& request, const std::string& path)
      : stage_(stage), request_(request), path_(path) {}

  void add(const Pass& pass) {
    require(pass.chunk >= 0 && pass.chunk < request_.stages * request_.chunks &&
                request_.rank_of(pass.chunk) == stage_ && pass.micro_batch >= 0 &&
                pass.micro_batch < request_.micro_batches,
            "has no pass", pass);
    Chunk& chunk = chunks_[pass.chunk];
    const bool forward = pass.kind == ActionKind::forward, later = pass.kind == ActionKind::backward_weight;
    const bool has_turn = later ? !chunk.waiting.empty() && chunk.waiting.front() == pass.micro_batch
                                : pass.micro_batch == (forward ? chunk.forwards : chunk.backwards);
    require(has_turn, "has not come to", pass);
    require(forward || chunk.forwards > pass.micro_batch, "has no forward before", pass);
    if (forward) ++chunk.forwards;
    else if (later) chunk.waiting.pop_front();
    else ++chunk.backwards;
    if (pass.kind == ActionKind::backward_input) chunk.waiting.push_back(pass.micro_batch);
  }
  void require_all() {
    for (int chunk = 0; chunk < request_.stages * request_.chunks; ++chunk) {
      if (request_.rank_of(chunk) != stage_) continue;
      const auto& [forwards, backwards, waiting] = chunks_[chunk];
      const int all = request_.micro_batches;
      require(forwards == all, "lacks", {ActionKind::forward, chunk, forwards});
      require(backwards == all, "lacks", {ActionKind::backward, chunk, backwards});
      require(waiting.empty(), "lacks",
              {ActionKind::backward_weight, chunk, waiting.empty() ? 0 : waiting.front()});
    }
  }

 private:
  struct Chunk {
    int forwards = 0, backwards = 0;
    std::deque<int> waiting;  ///< micro-batches whose weight half is to come
  };
  void require(bool holds, std::string_view finding, const Pass& pass) const {
    if (!holds) refuse_order(path_, fmt::format("stage {} {} {}", stage_, finding, word_of(pass)));
  }

  int stage_;
  const OrderRequest& request_;
  const std::string& path_;
  std::map<int, Chunk> chunks_;
};

}  // namespace

void refuse_order(const std::string& path, const std::string& finding) {
  fail(Exit::bad_configuration, "{}: {} (remove the file, and the order is searched again)", path, finding);
}

std::string question_of_search(const Outline& outline, const PriceList& prices) {
  const PassClock clock(outline, prices);
  std::string numbers = fmt::format("{} {} {}", outline.micro_batches, outline.shards,
                                    most_tapes(outline, ScheduleKind::searched));
  for (const std::int64_t fewer : outline.fewer_tapes) numbers += fmt::format(" {}", fewer);
  for (const ChunkPasses& chunk : clock.chunks())
    numbers += fmt::format("\n{} {} {} {} {} {} {} {} {}", chunk.stage, chunk.forward, chunk.whole,
                           chunk.input, chunk.weight, chunk.up, chunk.down, chunk.saved, chunk.put_off);
  Sha256 sha;
  sha.add(numbers.data(), numbers.size());
  constexpr std::size_t digits = 16;
  return to_string(sha.end()).substr(0, digits);
}

std::string text_of_order(const Order& order, const std::string& question) {
  std::string text{explanation};
  text += fmt::format("{}{}\n", asked, question);
  for (const std::vector<Pass>& passes : order) {
    std::string_view between = "";
    for (const Pass& pass : passes) text += fmt::format("{}{}", std::exchange(between, " "), word_of(pass));
    text += '\n';
  }
  return text;
}

std::optional<Order> order_of_text(const std::string& text, const std::string& question,
                                   const OrderRequest& request, const std::string& path) {
  std::istringstream lines(text);
  std::string line;
  Order order;
  for (bool is_asked = false; std::getline(lines, line);) {
    if (line.rfind('#', 0) == 0) continue;
    if (!is_asked) {
      if (line.rfind(asked, 0) != 0) refuse_order(path, fmt::format("begins with no line \"{}...\"", asked));
      if (line.substr(asked.size()) != question) return {};
      is_asked = true;
      continue;
    }
    std::vector<Pass>& passes = order.emplace_back();
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const std::optional<Pass> pass = pass_of(word);
      if (!pass)
        refuse_order(
            path, fmt::format("stage {} has '{}', which is no pass", order.size() - 1, printable(word, 20)));
      passes.push_back(*pass);
    }
  }
  if (std::ssize(order) != request.stages)
    refuse_order(path, fmt::format("has the passes of {} stages, not {}", order.size(), request.stages));
  for (int stage = 0; stage < request.stages; ++stage) {
    PassesOfStage passes(stage, request, path);
    for (const Pass& pass : order[stage]) passes.add(pass);
    passes.require_all();
  }
  return order;
}

}  // namespace mindpipe
