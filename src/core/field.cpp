#include "core/field.h"

namespace mindpipe {

Shape Field::of(std::int64_t count) const {
  return shape.rank == 2 ? Shape{count, shape[0], shape[1]} : Shape{count, shape[0]};
}

Shape Field::of(std::int64_t groups, std::int64_t count) const {
  return shape.rank == 2 ? Shape{groups, count, shape[0], shape[1]} : Shape{groups, count, shape[0]};
}

void FieldTensors::set(std::string_view name, const Tensor& tensor) {
  std::size_t i = 0;
  while (i < count_ && entries_[i].name != name) ++i;
  MP_CHECK(i < most, "more than {} fields", most);
  entries_[i] = {name, tensor};
  if (i == count_) ++count_;
}

Tensor FieldTensors::find(std::string_view name) const {
  for (const Entry& entry : entries())
    if (entry.name == name) return entry.tensor;
  return {};
}

const Tensor& FieldTensors::at(std::string_view name) const {
  for (const Entry& entry : entries())
    if (entry.name == name) return entry.tensor;
  fail(Exit::internal, "the field {} is not among those that are here", name);
}

FieldTensors FieldTensors::part(std::int64_t i) const {
  FieldTensors parts;
  for (const Entry& entry : entries()) parts.set(entry.name, entry.tensor.at(i));
  return parts;
}

}  // namespace mindpipe
