#include "plan/block_passes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "config/config.h"

namespace mindpipe {

BlockPasses::BlockPasses(const Config& config, const Layout& layout, Backend& backend, Memory& memory,
                         Communicator& tensor)
    : layout_(layout), backend_(backend), memory_(memory) {
  const LayerContext context{backend,
                             tensor,
                             compute_dtype(config.train),
                             config.train.sequence_parallel,
                             config.seed,
                             backend.wants_many_rows()};
  stage_ = std::make_unique<Stage>(config, layout, context, std::vector<std::pair<int, int>>{});
}

void BlockPasses::allocate(const Sizes& sizes) {
  const Shape losses{layout_.samples, model().targets_per_sample()};
  const Shape hits{Hits::places};
  std::size_t bytes = bytes_for(losses, DType::f32) + bytes_for(hits, DType::f64);
  for (const Field& field : model().fields()) bytes += bytes_for(field.of(layout_.samples), field.type);
  inputs_ = Arena(memory_, MemoryClass::boundary, bytes);
  for (const Field& field : model().fields())
    batch_.fields.set(field.name, inputs_.take(field.of(layout_.samples), field.type));
  batch_.samples = layout_.samples;
  batch_.calibrated = 1;
  losses_ = inputs_.take(losses, DType::f32);
  hits_ = inputs_.take(hits, DType::f64);
  kept_ = Arena(memory_, MemoryClass::activations, sizes.kept);
  scratch_ = Arena(memory_, MemoryClass::workspace, sizes.scratch);
  outside_ = Arena(memory_, MemoryClass::boundary, sizes.outside);
  if (memory_.kind() == Memory::Kind::counted) return;
  fill_inputs();
  for (Arena* arena : {&kept_, &scratch_, &outside_}) {
    if (arena->size() == 0) continue;
    const Tensor all = arena->take({static_cast<std::int64_t>(arena->size() / sizeof(float))}, DType::f32);
    backend_.fill({all, 0});
    arena->forget();
  }
}

/// Fields of zeros: token 0, class 0, texts of no length.
void BlockPasses::fill_inputs() {
  std::vector<std::byte> zeros(inputs_.size());
  const Tensor all{inputs_.address_of(0), {static_cast<std::int64_t>(zeros.size())}, DType::u8};
  backend_.upload(zeros.data(), all);
}

Tape BlockPasses::make_tape(Arena* caches) {
  Tape tape(backend_, kept_, scratch_, caches);
  tape.batch = batch_;
  tape.losses = losses_;
  return tape;
}

/// What enters `block`, kept as a stage keeps what it received; nothing before the first block.
Boundary BlockPasses::boundary_before(int block, Tape& tape) {
  if (block == 0) return {};
  Boundary in;
  const auto [activation, memory] = stage_->before(block);
  in.activation = tape.output(activation, stage_->context().dtype);
  if (memory.rank > 0) in.encoder_output = tape.output_for_all(memory, stage_->context().dtype);
  return in;
}

BlockPasses::Taken BlockPasses::train(int first, int last, Tape::WeightGradients weight_gradients,
                                      const std::function<void(Part)>& told,
                                      const std::vector<int>& swapped) {
  Tape tape = make_tape();
  tape.segments().have(TapeSegments::first_of_blocks + (swapped.empty() ? 0 : last - first));
  // Far apart: on paper there is room.
  for (const int block : swapped) {
    const std::size_t far =
        kept_.size() / (static_cast<std::size_t>(last - first) + 1) / alignment * alignment;
    const std::size_t begin = far * (static_cast<std::size_t>(block - first) + 1);
    tape.segments().lay(TapeSegments::first_of_blocks + block - first, begin, begin + far);
  }
  const auto segment_of = [&](int block) {
    const bool is_apart = std::binary_search(swapped.begin(), swapped.end(), block);
    return is_apart ? TapeSegments::first_of_blocks + block - first : int{TapeSegments::own_room};
  };
  std::vector<int> edges{first};
  for (int block = first + 1; block < last; ++block)
    if (segment_of(block) != segment_of(block - 1)) edges.push_back(block);
  edges.push_back(last);
  Tape other(backend_, outside_, scratch_);
  tape.weight_gradients = weight_gradients;
  // A residual block saves what it was given, which must lie in the arena, whether it is counted or not.
  Taken taken;
  tape.segments().enter(segment_of(first));
  Boundary passes = boundary_before(first, tape);
  for (const int segment : std::set{int{TapeSegments::own_room}, segment_of(first)})
    taken.entered += tape.segments().taken(segment).second - tape.segments().taken(segment).first;
  told(Part::entry);
  for (std::size_t piece = 0; piece + 1 < edges.size(); ++piece) {
    const int begin = edges[piece], end = edges[piece + 1];
    tape.segments().enter(segment_of(begin), end < last ? segment_of(end) : -1);
    passes = stage_->forward(begin, end, passes, tape);
  }
  const auto [room, room_end] = tape.segments().taken(TapeSegments::own_room);
  taken.kept = room_end - room;
  told(Part::forward);
  Boundary dout;
  if (last < static_cast<int>(model().blocks().size())) {
    const auto [activation, memory] = stage_->before(last);
    dout.activation = other.output(activation, stage_->context().dtype);
    if (memory.rank > 0) dout.encoder_output = other.output(memory, DType::f32);
  }
  const bool is_later = weight_gradients == Tape::WeightGradients::later;
  if (is_later) tape.segments().lay(TapeSegments::beside, room_end, kept_.size());
  for (std::size_t piece = edges.size() - 1; piece-- > 0;) {
    tape.segments().enter(is_later ? int{TapeSegments::beside} : segment_of(edges[piece]));
    dout = stage_->backward(edges[piece], edges[piece + 1], dout, tape);
  }
  told(Part::backward);
  const auto [beside, beside_end] = tape.segments().taken(TapeSegments::beside);
  taken.put_off = beside_end - beside;
  tape.run_weight_gradients();
  told(Part::weights);
  taken.room = tape.segments().most(TapeSegments::own_room);
  taken.beside = tape.segments().most(TapeSegments::beside);
  for (const int block : swapped)
    taken.segments[block] = tape.segments().most(TapeSegments::first_of_blocks + block - first);
  return taken;
}

void BlockPasses::look(int first, int last, Tape::Mode mode) {
  Tape tape = make_tape(), arrived(backend_, outside_, scratch_);
  tape.mode = mode;
  tape.hits = hits_;
  stage_->forward(first, last, boundary_before(first, arrived), tape);
  tape.clear();
  arrived.clear();
}

void BlockPasses::forget() {
  for (Arena* arena : {&kept_, &scratch_, &outside_}) arena->forget();
}

}  // namespace mindpipe
