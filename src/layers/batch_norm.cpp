#include "layers/batch_norm.h"

namespace mindpipe {

BatchNorm::BatchNorm(const LayerContext& context, Unit& unit, const std::string& name, Split split,
                     const BatchNormSpec& spec)
    : context_(context), split_(split), spec_(spec) {
  const auto add = [&](const char* part, Initial::Kind initial, double follows) {
    ParamSpec made{{{name + part, spec.channels}}, 0, split, Form::whole, {initial}, false};
    made.follows = follows;
    return unit.add(made);
  };
  gain_ = add(".weight", Initial::Kind::one, 0);
  offset_ = add(".bias", Initial::Kind::zero, 0);
  if (!spec.runs) return;
  mean_ = add(".running_mean", Initial::Kind::zero, spec.momentum);
  variance_ = add(".running_var", Initial::Kind::one, spec.momentum);
}

Tensor BatchNorm::rows_of(const Tensor& x, int shard) const {
  const Tensor own = split_ == Split::none ? x : x.at(shard);
  return own.reshaped({own.count() / channels(), channels()});
}

void BatchNorm::find_statistics(const Tensor& rows, const Tensor& statistics, Tape& tape) {
  Tape::Scope scope(tape);
  const std::int64_t count = rows.shape[0];
  MP_REQUIRE(
      count > 1, Exit::bad_configuration,
      "batch norm: a micro-batch has one value of each channel, which says nothing of how they vary; make "
      "train.micro_batch larger, or pictures");
  const Tensor parts = tape.scratch({pixel_chunks(count), 2, channels()}, exact());
  context_.backend.batch_moments({rows, parts});
  context_.backend.batch_statistics({parts, count, spec_.epsilon, statistics});
}

void BatchNorm::running_statistics(int shard, const Tensor& statistics, Tape& tape) {
  Tape::Scope scope(tape);
  const Tensor parts = tape.scratch({2, channels()}, exact());
  context_.backend.convert({mean_.value(shard), parts.at(0)});
  context_.backend.convert({variance_.value(shard), parts.at(1)});
  context_.backend.batch_statistics({parts, 1, spec_.epsilon, statistics});
}

/// Adds a micro-batch's means and variances up, one micro-batch after the other.
void BatchNorm::collect(const Tensor& statistics, const Tensor& collected, Tape& tape) {
  if (tape.batch.calibrated == 0) context_.backend.fill({collected, 0});
  for (int s = 0; s < shards(); ++s) {
    context_.backend.accumulate({statistics.at(s).at(0), collected.at(s).at(0)});
    context_.backend.accumulate({statistics.at(s).at(2), collected.at(s).at(1)});
  }
}

void BatchNorm::collected_statistics(int shard, const Tensor& collected, const Tensor& statistics,
                                     Tape& tape) {
  MP_CHECK(tape.batch.calibrated > 0, "a network of a supernet is evaluated before it is calibrated");
  Tape::Scope scope(tape);
  const Tensor parts = tape.scratch({2, channels()}, exact());
  context_.backend.scale({collected.at(shard), 1.0 / static_cast<double>(tape.batch.calibrated), parts});
  context_.backend.batch_statistics({parts, 1, spec_.epsilon, statistics});
}

void BatchNorm::norm(const Tensor& x, const Tensor& statistics, const Tensor& y) {
  for (int s = 0; s < shards(); ++s)
    context_.backend.batch_norm(
        {rows_of(x, s), statistics.at(s), gain_.value(s), offset_.value(s), spec_.relu, rows_of(y, s)});
}

void BatchNorm::forward(const Tensor& x, const Tensor& y, Tape& tape) {
  const bool evaluates = tape.mode == Tape::Mode::evaluate || tape.mode == Tape::Mode::generate;
  const Tensor statistics = tape.keep({shards(), 3, channels()}, exact());
  const bool reads = !spec_.runs && !tape.trains();
  const Tensor collected = reads ? tape.statistics->take(this->collected(), exact()) : Tensor{};
  for (int s = 0; s < shards(); ++s) {
    if (!evaluates) find_statistics(rows_of(x, s), statistics.at(s), tape);
    else if (spec_.runs) running_statistics(s, statistics.at(s), tape);
    else collected_statistics(s, collected, statistics.at(s), tape);
  }
  if (collected && !evaluates) collect(statistics, collected, tape);
  norm(x, statistics, y);
  tape.save(x);
  tape.save(statistics);
}

void BatchNorm::forward_again(const Tensor& y, Tape& tape) { norm(tape.peek(1), tape.peek(0), y); }

void BatchNorm::backward(const Tensor& dy, const Tensor& residual, const Tensor& dx, Tape& tape) {
  Tape::Scope scope(tape);
  Backend& backend = context_.backend;
  const Tensor statistics = tape.restore(), x = tape.restore(), sums = tape.scratch({2, channels()}, exact());
  for (int s = 0; s < shards(); ++s) {
    const Tensor rows = rows_of(x, s), found = statistics.at(s), gain = gain_.value(s),
                 offset = offset_.value(s);
    const Tensor parts = tape.scratch({pixel_chunks(rows.shape[0]), 2 * channels()}, exact());
    backend.batch_norm_backward_sums({rows_of(dy, s), rows, found, gain, offset, spec_.relu, parts});
    backend.fill({sums, 0});
    backend.bias_backward({parts, sums.reshaped({1, 2 * channels()})});
    backend.accumulate({sums.at(0), offset_.gradient(s)});
    backend.accumulate({sums.at(1), gain_.gradient(s)});
    if (spec_.runs) {
      backend.accumulate({found.at(0), mean_.gradient(s)});
      backend.accumulate({found.at(2), variance_.gradient(s)});
    }
    backend.batch_norm_backward_input({rows_of(dy, s), rows, found, gain, offset, sums, spec_.relu,
                                       residual ? rows_of(residual, s) : Tensor{}, rows_of(dx, s)});
  }
}

}  // namespace mindpipe
