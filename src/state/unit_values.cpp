#include "state/unit_values.h"

#include <algorithm>

namespace mindpipe {

void UnitValues::allocate(std::int64_t window, bool in_order) {
  window_ = window;
  in_order_ = in_order;
  for (const int unit : stage_.local_units()) {
    if (stage_.model().is_shared(unit)) {
      held_[unit].copies.resize(2);
      shared_.push_back(unit);
    }
    hold(unit);
  }
}

void UnitValues::hold(int unit) {
  Unit& of_model = stage_.unit(unit);
  Held& held = held_[unit];
  held.arena = Arena(stage_.context().backend.memory(), MemoryClass::values,
                     held.copies.size() * value_bytes(of_model));
  for (Copy& copy : held.copies) copy.values = held.arena.take({of_model.flat_count()}, of_model.dtype());
  of_model.place_values(newest(unit));
}

void UnitValues::begin(Reader first) {
  MP_CHECK(first % window_ == 0, "subnet {} begins no window of {}", first, window_);
  for (const int unit : shared_) {
    Held& held = held_[unit];
    const std::size_t newest = first == 0 ? held.newest : 1 - copy_of(first);
    if (newest != held.newest) std::swap(held.copies[0], held.copies[1]);
    held.newest = newest;
    Copy& other = held.copies[1 - newest];
    other.version = version(unit) - 1;
    held.beyond = version(unit) - first / window_;
    if (first > 0) continue;
    stage_.context().backend.copy(held.copies[newest].values, other.values);
    other.version = version(unit);
  }
}

void UnitValues::bind(Reader reader) {
  for (const int unit : shared_) {
    const std::int64_t found = version_read(reader, unit),
                       due = held_[unit].beyond + std::max<std::int64_t>(0, reader / window_ - 1);
    MP_CHECK(
        !in_order_ || found == due,
        "subnet {} finds version {} of unit {}, which all subnets share, and {} is due: the order of "
        "windows was not kept. This is a mistake of the program, or of the machine; a restart goes on from "
        "the last checkpoint",
        reader, found, stage_.unit(unit).name(), due);
    stage_.unit(unit).place_values(read_by(reader, unit));
  }
}

void UnitValues::bind_newest() {
  for (const int unit : shared_) stage_.unit(unit).place_values(newest(unit));
}

void UnitValues::open(int unit, std::int64_t window) {
  Held& held = held_[unit];
  const auto opened = static_cast<std::size_t>(window % 2);
  const Copy& before = held.copies[1 - opened];
  stage_.context().backend.copy(before.values, held.copies[opened].values);
  held.copies[opened].version = before.version;
  held.newest = opened;
  stage_.unit(unit).place_values(newest(unit));
}

}  // namespace mindpipe
