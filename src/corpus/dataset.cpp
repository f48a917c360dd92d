#include "corpus/dataset.h"

#include <unistd.h>

#include <algorithm>

#include "core/check.h"
#include "core/random.h"

namespace mindpipe {

namespace {
/// A round's seed: the seed itself, below 2^32, for the first, as existing tools do; else derived from it.
std::uint32_t seed_of_round(std::uint64_t seed, std::int64_t round) {
  if (round == 0 && seed <= 0xffffffffu) return static_cast<std::uint32_t>(seed);
  return RandomStream{seed, purpose_of("corpus.round"), static_cast<std::uint32_t>(round >> 32),
                      static_cast<std::uint32_t>(round)}
      .word(0);
}
}  // namespace

void TextDataset::sample(std::int64_t index, const FieldTensors& to) {
  text(index, text_.data());
  const Tensor tokens = to.find(field::tokens), targets = to.find(field::targets);
  if (tokens) std::copy_n(text_.data(), sequence_, tokens.as<std::int32_t>());
  if (targets) std::copy_n(text_.data() + 1, sequence_, targets.as<std::int32_t>());
}

DocumentDataset::DocumentDataset(std::unique_ptr<Documents> documents, std::int64_t sequence,
                                 std::optional<std::uint64_t> seed, std::int64_t planned,
                                 const std::string& orders)
    : TextDataset(sequence),
      documents_(std::move(documents)),
      lengths_(lengths_of(*documents_)),
      seed_(seed),
      orders_(orders) {
  MP_CHECK(sequence > 0, "samples of {} tokens", sequence);
  const std::int64_t tokens = lengths_.tokens;
  MP_REQUIRE(tokens > 0, Exit::bad_data,
             "{}: the file has no tokens (a sample takes {}); name a file that has some", documents_->name(),
             sequence + 1);
  MP_REQUIRE(tokens > sequence, Exit::bad_data,
             "{}: the file has {} tokens (a sample takes {}: data.sequence and one more); shorten "
             "data.sequence or take a longer file",
             documents_->name(), tokens, sequence + 1);
  if (planned > 0) first_round_ = epochs_for(tokens, sequence, planned);
  first_samples_ = (first_round_.count * tokens - 1) / sequence;
  require_order(documents_->name(), numbers_in_order(*documents_, first_round_, first_samples_));
  round_samples_ = (tokens - 1) / sequence;
}

void DocumentDataset::open_round(std::int64_t round) {
  const auto seed = seed_ ? std::optional(seed_of_round(*seed_, round)) : std::nullopt;
  if (seed || round_ < 0 || (first_round_.count > 1 && std::min(round, round_) == 0))
    replace_order(seed, round == 0 ? first_round_ : Epochs{});
  round_ = round;
}

/// Opens an order in the place of the open one, whose file no later sample needs.
void DocumentDataset::replace_order(std::optional<std::uint32_t> seed, Epochs epochs) {
  const std::string before = order_ ? order_->path() : "";
  order_.emplace(*documents_, sequence(), seed, epochs, orders_, lengths_);
  if (!before.empty() && before != order_->path()) ::unlink(before.c_str());
}

void DocumentDataset::text(std::int64_t index, std::int32_t* tokens) {
  MP_CHECK(index >= 0, "{}: sample {}", documents_->name(), index);
  const std::int64_t beyond = index - first_samples_, round = beyond < 0 ? 0 : 1 + beyond / round_samples_;
  if (round != round_) open_round(round);
  auto [position, offset] = order_->start(order_->drawn(round == 0 ? index : beyond % round_samples_));
  for (std::int64_t done = 0; done < sequence() + 1; ++position, offset = 0) {
    const std::int64_t document = order_->document(position);
    const std::int64_t take = std::min(documents_->length(document) - offset, sequence() + 1 - done);
    documents_->read(document, offset, take, tokens + done);
    done += take;
  }
}

std::string DocumentDataset::describe() const {
  return fmt::format("{}: {} tokens in {} documents, {} samples an epoch, {}", documents_->name(),
                     lengths_.tokens, documents_->count(), round_samples_, seed_ ? "shuffled" : "in order");
}

}  // namespace mindpipe
