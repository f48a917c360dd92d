#include "runtime/pass_rooms.h"

#include "comm/fault_points.h"
#include "state/loss_sums.h"

namespace mindpipe {

PassRooms::PassRooms(Stage& stage, const PassMemory& sizes, Arena& scratch)
    : stage_(stage), slots_(sizes.slots), rooms_(sizes.slab) {
  Backend& backend = stage.context().backend;
  Memory& memory = backend.memory();
  slab_ = Arena(memory, MemoryClass::activations, sizes.slab.bytes);
  if (sizes.slab.host_bytes > 0) host_ = Arena(*sizes.host, MemoryClass::activations, sizes.slab.host_bytes);
  for (Slot& slot : slots_) {
    slot.kept = Arena(memory, MemoryClass::activations, sizes.tape);
    slot.arrived_gradient = Arena(memory, MemoryClass::boundary, sizes.gradient);
    slot.tape = std::make_unique<Tape>(backend, sizes.tape > 0 ? slot.kept : slab_, scratch);
    slot.tape->segments().have(
        TapeSegments::first_of_blocks +
        (rooms_.segments.empty() ? 0 : static_cast<int>(stage.model().blocks().size())));
  }
  for (const std::size_t bytes : sizes.buffers) buffers_.emplace_back(memory, MemoryClass::boundary, bytes);
  if (sizes.batches == 0) return;
  const Shape one = losses_shape(stage), all{sizes.batches, one[0], one[1], one[2]};
  losses_arena_ = Arena(memory, MemoryClass::boundary, bytes_for(all, DType::f32));
  losses_ = losses_arena_.take(all, DType::f32);
}

/// The tensors of what crosses the cut before block `cut`, from an arena's beginning on: an activation and
/// perhaps an encoder's output behind it, or their gradients.
Boundary PassRooms::take(Arena& arena, int cut, bool gradient) const {
  const Stage::Entering shapes = stage_.before(cut);
  const DType dtype = stage_.context().dtype;
  arena.release(0);
  Boundary b;
  b.activation = arena.take(shapes.activation, dtype);
  if (shapes.memory.rank > 0) b.encoder_output = arena.take(shapes.memory, gradient ? DType::f32 : dtype);
  return b;
}

void PassRooms::open_room(const Action& pass, bool trains) {
  if (slab_.size() == 0) return;
  Slot& slot = slots_[pass.tape];
  if (!trains) return slot.tape->segments().lay(TapeSegments::own_room, 0, slab_.size());
  const TapeRoom& room = rooms_.rooms.at({pass.chunk, pass.micro_batch});
  if (!is_forward(pass) && is_left_out("rooms", "last_pass"))  // as if the room were free a pass too early
    forget(slab_.address_of(room.tape), room.tape_end - room.tape);
  slot.tape->segments().lay(TapeSegments::own_room, room.tape, room.tape_end);
  slot.tape->segments().lay(TapeSegments::beside, room.waiting, room.waiting_end);
  const int here = pass.segment < 0 ? TapeSegments::own_room : lay_segment(slot, pass.first, pass.segment);
  if (is_half(pass)) return slot.tape->segments().enter(TapeSegments::beside);
  const bool goes_back = pass.segment >= 0 && pass.to_segment < 0 && pass.last < slot.last;
  slot.tape->segments().enter(here, pass.to_segment >= 0 ? lay_segment(slot, pass.last, pass.to_segment)
                                    : goes_back          ? int{TapeSegments::own_room}
                                                         : -1);
}

/// Says to a tape where the segment of a block lies; gives back its number.
int PassRooms::lay_segment(Slot& slot, int block, int number) {
  const SegmentRoom& room = rooms_.segments.at(block);
  const int segment = segment_of(slot, block);
  slot.tape->segments().lay(segment, room.slot(number), room.slot(number) + room.bytes);
  return segment;
}

void PassRooms::forget_segment(Slot& slot, int segment) {
  const auto [begin, end] = slot.tape->segments().taken(segment);
  forget(slab_.address_of(begin), end - begin);
}

void PassRooms::close_segment(const Action& pass) {
  Slot& slot = slots_[pass.tape];
  forget_segment(slot, segment_of(slot, pass.first));
  slot.tape->segments().empty(segment_of(slot, pass.first));
}

std::pair<Tensor, Tensor> PassRooms::segment_way(const Action& action) {
  Slot& slot = slots_[action.tape];
  const SegmentRoom& room = rooms_.segments.at(action.first);
  const auto [begin, end] = slot.tape->segments().taken(lay_segment(slot, action.first, action.segment));
  const Shape bytes{static_cast<std::int64_t>(end - begin)};
  const Tensor here{slab_.address_of(begin), bytes, DType::u8},
      there{host_.address_of(room.place(action.host)), bytes, DType::u8};
  return shape_of<CopyTraits>(action)->comes ? std::pair(there, here) : std::pair(here, there);
}

void PassRooms::close_room(const Action& pass) {
  Slot& slot = slots_[pass.tape];
  if (is_half(pass))
    for (int block = pass.first; block < slot.last; ++block)
      if (rooms_.segments.contains(block)) forget_segment(slot, segment_of(slot, block));
  slot.tape->clear();
  if (slab_.size() == 0) return;
  const TapeRoom& room = rooms_.rooms.at({pass.chunk, pass.micro_batch});
  forget(slab_.address_of(room.tape), room.tape_end - room.tape);
  forget(slab_.address_of(room.waiting), room.waiting_end - room.waiting);
}

Boundary PassRooms::entering(const Action& pass) {
  const bool forward = is_forward(pass);
  const int cut = forward ? pass.first : pass.last;
  if (cut == (forward ? 0 : static_cast<int>(stage_.model().blocks().size()))) return {};
  if (pass.from_buffer >= 0) return buffer(pass.from_buffer, cut, !forward);
  const Boundary arrived = arrival(pass.tape, cut, !forward);
  if (forward) slots_[pass.tape].tape->segments().keep_arrived();
  return arrived;
}

Tensor PassRooms::message(const Action& message) {
  const bool gradient = !travels_forward(message.payload);
  const int number = sends(message) ? message.from_buffer : message.to_buffer;
  const Boundary b =
      number >= 0 ? buffer(number, message.first, gradient) : arrival(message.tape, message.first, gradient);
  const bool encoded =
      message.payload == Payload::encoder_output || message.payload == Payload::encoder_output_gradient;
  return encoded ? b.encoder_output : b.activation;
}

void PassRooms::copy(const Boundary& from, const Boundary& to) const {
  Backend& backend = stage_.context().backend;
  backend.copy(from.activation, to.activation);
  if (to.encoder_output) backend.copy(from.encoder_output, to.encoder_output);
}

void PassRooms::set_micro_batch(Tape& tape, const StepInput& input, int micro_batch,
                                std::int64_t batch) const {
  const Layout& layout = stage_.layout();
  tape.batch = {input.fields.part(micro_batch), layout.samples, layout.first_sample(micro_batch), input.step,
                input.choice};
  tape.batch.calibrated = input.calibrated + (input.mode == Tape::Mode::calibrate ? micro_batch : 0);
  tape.loss_factor = 1.0 / static_cast<double>(targets_of_step(stage_));
  if (losses_) tape.losses = losses_of(batch).at(micro_batch);
}

}  // namespace mindpipe
