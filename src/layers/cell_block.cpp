#include "layers/cell_block.h"

#include <algorithm>

namespace mindpipe {

/// A gradient that comes in several parts; the first one is copied, the others are added.
class CellBlock::GradientSum {
 public:
  GradientSum(Backend& backend, const Tensor& total) : backend_(&backend), total_(total) {}

  void add(const Tensor& part) {
    if (begun_) backend_->add({total_, part, total_});
    else backend_->copy(part, total_);
    begun_ = true;
  }
  /// Adds what goes back through a norm.
  void add_through(Norm& norm, const Tensor& dy, Tape& tape) {
    norm.backward(dy, begun_ ? total_ : Tensor{}, total_, tape);
    begun_ = true;
  }
  const Tensor& total() {
    if (!begun_) backend_->fill({total_, 0});
    begun_ = true;
    return total_;
  }

 private:
  Backend* backend_;
  Tensor total_;
  bool begun_ = false;
};

namespace {

/// Whether a branch is the state that it reads, as it is.
bool is_state(const CellBranchSpec& branch) {
  return branch.width > 0 && branch.layer == nullptr && !branch.norm && branch.activation == Activation::none;
}

Tensor columns_of(Backend& backend, const Tensor& x, std::int64_t first, std::int64_t width, Tape& tape) {
  if (width == x.cols()) return x;
  const Tensor y = tape.scratch({x.shape[0], x.shape[1], width}, x.dtype);
  backend.cut_columns({x, y, first});
  return y;
}

/// The state that stands behind `before` numbers a row in a packed activation.
Tensor state_of(const Tensor& packed, std::int64_t before, std::int64_t width) {
  if (width == 0) return {};
  const std::int64_t rows = packed.shape[0] * packed.shape[1];
  auto* data = packed.as<std::byte>() + static_cast<std::size_t>(rows * before) * bytes_of(packed.dtype);
  return {data, {packed.shape[0], packed.shape[1], width}, packed.dtype};
}

}  // namespace

/// The branches and the combiner of this micro-batch.
struct CellBlock::Taken {
  CellBranchSpec &left, &right;
  Combiner combine;
  bool has_right() const { return right.width > 0; }
  /// Whether what comes out is a sum.
  bool adds() const { return !has_right() || combine == Combiner::add; }
};

struct CellBlock::States {
  Tensor newest, older;
  const Tensor& at(int input) const { return input == 2 ? older : newest; }
};

struct CellBlock::Sums {
  GradientSum newest, older;
  GradientSum* shared = nullptr;  ///< gradient of the shared norm's output, which both branches read
  GradientSum& at(int input) { return input == 2 ? older : newest; }
};

CellBlock::Taken CellBlock::taken(const Tape& tape) {
  if (spec_.place < 0) return {spec_.left.front(), spec_.right.front(), spec_.combine.front()};
  MP_CHECK(tape.batch.choice != nullptr, "block {} of a supernet without a subnet", spec_.place);
  const std::uint8_t* choice = tape.batch.choice + spec_.place;
  MP_CHECK(
      choice[0] < spec_.left.size() && choice[1] < spec_.right.size() && choice[2] < spec_.combine.size(),
      "candidates {}, {}, {} of {}, {}, {} at {}", choice[0], choice[1], choice[2], spec_.left.size(),
      spec_.right.size(), spec_.combine.size(), spec_.place);
  return {spec_.left[choice[0]], spec_.right[choice[1]], spec_.combine[choice[2]]};
}

std::vector<std::string_view> CellBlock::reads() const {
  std::vector<std::string_view> fields;
  for (const auto* branches : {&spec_.left, &spec_.right})
    for (const CellBranchSpec& branch : *branches)
      if (branch.layer != nullptr)
        for (const std::string_view field : branch.layer->reads())
          if (std::find(fields.begin(), fields.end(), field) == fields.end()) fields.push_back(field);
  return fields;
}

std::size_t CellBlock::cache_bytes(std::int64_t samples) const {
  std::size_t bytes = 0;
  for (const auto* branches : {&spec_.left, &spec_.right})
    for (const CellBranchSpec& branch : *branches)
      if (branch.layer != nullptr) bytes += branch.layer->cache_bytes(samples);
  return bytes;
}

/// What a branch gives of a state, or of what the shared norm gave, without its last bias and undropped.
Tensor CellBlock::run(CellBranchSpec& branch, const Tensor& x, const Boundary& in, Tape& tape) {
  if (is_state(branch)) return x;
  Tensor y = branch.whole && !spec_.shared ? enter(context_, x, tape) : x;
  if (branch.norm) y = branch.norm->forward(y, tape, tape.keep(y.shape, y.dtype));
  if (branch.layer != nullptr) y = branch.layer->forward(y, in, tape);
  if (branch.activation != Activation::none) {
    const Tensor before = tape.keep(y.shape, y.dtype), after = tape.scratch(y.shape, y.dtype);
    context_.backend.copy(y, before);
    context_.backend.activation({before, branch.activation, after});
    tape.save(before);
    y = after;
  }
  return branch.whole ? own_rows(context_, y, tape) : y;
}

/// What a branch gave, with its bias and dropped.
Tensor CellBlock::settled(const CellBranchSpec& branch, const Tensor& y, Tape& tape) const {
  if (is_state(branch)) return y;
  const Dropout dropped = dropout(branch, tape);
  const SequencePart sequence = sequence_part_of(context_, y);
  if (!branch.bias) {
    if (dropped.probability > 0) context_.backend.dropout({y, dropped, sequence, y});
    return y;
  }
  const Tensor sum = tape.scratch(y.shape, y.dtype);
  context_.backend.fill({sum, 0});
  context_.backend.residual({.x = sum,
                             .branch = y,
                             .bias = branch.bias.value(),
                             .dropout = dropped,
                             .sequence = sequence,
                             .y = sum});
  return sum;
}

/// Adds a state to what comes out; nothing is copied where it may be read where it is.
void CellBlock::add_state(const Tensor& state, Tensor& sum, const Tensor& y) const {
  if (!sum && state.cols() == y.cols()) {
    sum = state;
    return;
  }
  context_.backend.pad_columns({.x = state, .sum = sum, .y = y});
  sum = y;
}

/// Adds what a branch's layer gave.
void CellBlock::add_branch(const CellBranchSpec& branch, const Tensor& part, Tensor& sum, const Tensor& y,
                           Tape& tape) const {
  if (!sum || part.cols() < y.cols())
    context_.backend.pad_columns({.x = settled(branch, part, tape), .sum = sum, .y = y});
  else
    context_.backend.residual({.x = sum,
                               .branch = part,
                               .bias = branch.bias ? branch.bias.value() : Tensor{},
                               .dropout = dropout(branch, tape),
                               .sequence = sequence_part_of(context_, y),
                               .y = y});
  sum = y;
}

/// States come first, then what layers give, left before right; each sum is rounded.
void CellBlock::add(const Taken& block, const States& inputs, const States& states, const Boundary& in,
                    const Tensor& y, Tape& tape) {
  Tensor sum;
  if (spec_.residual > 0) add_state(states.at(spec_.residual), sum, y);
  for (CellBranchSpec* branch : {&block.left, &block.right})
    if (is_state(*branch)) add_state(inputs.at(branch->input), sum, y);
  for (CellBranchSpec* branch : {&block.left, &block.right}) {
    if (branch->width == 0 || is_state(*branch)) continue;
    Tape::Scope scope(tape);
    add_branch(*branch, run(*branch, inputs.at(branch->input), in, tape), sum, y, tape);
  }
  if (sum.data != y.data) context_.backend.copy(sum, y);
}

/// Saves both factors.
void CellBlock::multiply(const Taken& block, const States& inputs, const Boundary& in, const Tensor& y,
                         Tape& tape) {
  Tensor factors[2];
  for (const bool is_right : {false, true}) {
    CellBranchSpec& branch = is_right ? block.right : block.left;
    Tensor& factor = factors[is_right];
    factor = tape.keep({y.shape[0], y.shape[1], branch.width}, y.dtype);
    Tape::Scope scope(tape);
    context_.backend.copy(settled(branch, run(branch, inputs.at(branch.input), in, tape), tape), factor);
  }
  const bool left_is_wide = factors[0].cols() >= factors[1].cols();
  context_.backend.multiply_columns({factors[left_is_wide ? 0 : 1], factors[left_is_wide ? 1 : 0], y});
  for (const Tensor& factor : factors) tape.save(factor);
}

void CellBlock::concat(const Taken& block, const States& inputs, const Boundary& in, const Tensor& y,
                       Tape& tape) {
  for (CellBranchSpec* branch : {&block.left, &block.right}) {
    const bool is_right = branch == &block.right;
    Tape::Scope scope(tape);
    const Tensor part = settled(*branch, run(*branch, inputs.at(branch->input), in, tape), tape);
    context_.backend.pad_columns(
        {.x = part, .sum = is_right ? y : Tensor{}, .y = y, .first = is_right ? block.left.width : 0});
  }
}

Boundary CellBlock::forward(Boundary in, Tape& tape) {
  const Shape& shape = in.activation.shape;
  MP_CHECK(shape[2] == spec_.newest + spec_.older, "{} numbers a row enter a block of {} and {}", shape[2],
           spec_.newest, spec_.older);
  const States states{state_of(in.activation, 0, spec_.newest),
                      state_of(in.activation, spec_.newest, spec_.older)};
  const Tensor out =
      tape.output({shape[0], shape[1], spec_.width + (spec_.keeps ? spec_.newest : 0)}, in.activation.dtype);
  const Tensor y = state_of(out, 0, spec_.width);
  if (spec_.keeps) context_.backend.copy(states.newest, state_of(out, spec_.width, spec_.newest));
  Tape::Scope scope(tape);
  const Taken block = taken(tape);
  States inputs = states;
  if (spec_.shared) {
    const Tensor& state = states.at(block.left.input);
    inputs.newest = inputs.older =
        spec_.shared->forward(spec_.shared_whole ? enter(context_, state, tape) : state, tape);
  }
  if (block.adds()) {
    add(block, inputs, states, in, y, tape);
    return {out, in.encoder_output};
  }
  if (block.combine == Combiner::multiply) multiply(block, inputs, in, y, tape);
  else concat(block, inputs, in, y, tape);
  if (spec_.residual > 0) context_.backend.pad_columns({.x = states.at(spec_.residual), .sum = y, .y = y});
  return {out, in.encoder_output};
}

/// From the gradient of what a branch gave to that of its state, or of what the shared norm gave.
void CellBlock::run_back(CellBranchSpec& branch, const Tensor& dy, const Boundary& dout, Sums& sums,
                         Tape& tape) {
  if (branch.width == 0 || is_state(branch)) return;
  Tape::Scope scope(tape);
  Tensor d = dy;
  if (const Dropout dropped = dropout(branch, tape); dropped.probability > 0) {
    d = tape.scratch(dy.shape, dy.dtype);
    context_.backend.dropout({dy, dropped, sequence_part_of(context_, dy), d});
  }
  if (branch.bias) context_.backend.bias_backward({d, branch.bias.gradient()});
  if (branch.whole) d = enter_gradient(context_, d, tape);
  if (branch.activation != Activation::none) {
    const Tensor before = tape.restore(), through = tape.scratch(before.shape, before.dtype);
    context_.backend.activation_backward({d, before, branch.activation, through});
    d = through;
  }
  if (branch.layer != nullptr) d = branch.layer->backward(d, dout, tape);
  if (sums.shared != nullptr) return sums.shared->add(d);
  back_through(branch.norm, branch.whole, d, sums.at(branch.input), tape);
}

/// The gradients of what both branches gave, of which those of states are added to their sums.
std::pair<Tensor, Tensor> CellBlock::divide(const Taken& block, const Tensor& dy, Sums& sums, Tape& tape) {
  Backend& backend = context_.backend;
  const std::int64_t left = block.left.width, right = block.right.width;
  std::pair<Tensor, Tensor> parts;
  if (!block.adds() && block.combine == Combiner::multiply) {
    const Tensor right_factor = tape.restore(), left_factor = tape.restore();
    const auto times = [&](const Tensor& factor, std::int64_t width) {
      const Tensor product = tape.scratch({dy.shape[0], dy.shape[1], width}, dy.dtype);
      backend.multiply_columns({columns_of(backend, dy, 0, width, tape),
                                columns_of(backend, factor, 0, std::min(width, factor.cols()), tape),
                                product});
      return product;
    };
    parts = {times(right_factor, left), times(left_factor, right)};
  } else {
    parts.first = columns_of(backend, dy, 0, left, tape);
    if (block.has_right()) parts.second = columns_of(backend, dy, block.adds() ? 0 : left, right, tape);
  }
  if (is_state(block.left)) sums.at(block.left.input).add(parts.first);
  if (is_state(block.right)) sums.at(block.right.input).add(parts.second);
  return parts;
}

/// Both branches, the right one first, and the norm that they share.
void CellBlock::run_both_back(const Taken& block, const std::pair<Tensor, Tensor>& parts,
                              const Boundary& dout, Sums& sums, Tape& tape) {
  if (!spec_.shared) {
    run_back(block.right, parts.second, dout, sums, tape);
    run_back(block.left, parts.first, dout, sums, tape);
    return;
  }
  const Shape& shape = dout.activation.shape;
  const bool gathers = spec_.shared_whole && context_.sequence_parallel;
  GradientSum normed(context_.backend,
                     tape.scratch({shape[0], shape[1] * (gathers ? context_.tensor.size() : 1),
                                   block.left.input == 2 ? spec_.older : spec_.newest},
                                  dout.activation.dtype));
  sums.shared = &normed;
  run_back(block.right, parts.second, dout, sums, tape);
  run_back(block.left, parts.first, dout, sums, tape);
  sums.shared = nullptr;
  back_through(spec_.shared, spec_.shared_whole, normed.total(), sums.at(block.left.input), tape);
}

/// From the gradient of what a branch's norm gave, or of what it reads, to that of its state.
void CellBlock::back_through(std::optional<Norm>& norm, bool whole, const Tensor& dy, GradientSum& state,
                             Tape& tape) const {
  if (norm && !whole) return state.add_through(*norm, dy, tape);
  Tensor d = dy;
  if (norm) {
    d = tape.scratch(dy.shape, dy.dtype);
    norm->backward(dy, {}, d, tape);
  }
  state.add(whole ? own_rows(context_, d, tape) : d);
}

Boundary CellBlock::backward(Boundary dout, Tape& tape) {
  Backend& backend = context_.backend;
  const Tensor& given = dout.activation;
  const Shape entering{given.shape[0], given.shape[1], spec_.newest + spec_.older};
  const Tensor din = entering.count() <= given.count() ? Tensor{given.data, entering, given.dtype}
                                                       : tape.scratch(entering, given.dtype);
  Tape::Scope scope(tape);
  const auto gradient = [&](std::int64_t width) {
    return width == 0 ? Tensor{} : tape.scratch({given.shape[0], given.shape[1], width}, given.dtype);
  };
  const Tensor dy = state_of(given, 0, spec_.width);
  Sums sums{{backend, gradient(spec_.newest)}, {backend, gradient(spec_.older)}};
  if (spec_.keeps) sums.newest.add(state_of(given, spec_.width, spec_.newest));
  if (spec_.residual > 0) {
    const std::int64_t width = spec_.residual == 2 ? spec_.older : spec_.newest;
    sums.at(spec_.residual).add(columns_of(backend, dy, 0, width, tape));
  }
  const Taken block = taken(tape);
  run_both_back(block, divide(block, dy, sums, tape), dout, sums, tape);
  backend.copy(sums.newest.total(), state_of(din, 0, spec_.newest));
  if (spec_.older > 0) backend.copy(sums.older.total(), state_of(din, spec_.newest, spec_.older));
  return {din, dout.encoder_output};
}

}  // namespace mindpipe
