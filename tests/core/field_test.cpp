#include "core/field.h"

#include <gtest/gtest.h>

#include <vector>

namespace mindpipe {
namespace {

TEST(Field, HasTheShapeOfItsSamplesOneAfterTheOther) {
  const Field number{field::source_lengths, DType::i32, {1}}, picture{"picture", DType::u8, {3, 64}};
  EXPECT_EQ(number.of(5), (Shape{5, 1}));
  EXPECT_EQ(number.of(2, 5), (Shape{2, 5, 1}));
  EXPECT_EQ(picture.of(5), (Shape{5, 3, 64}));
  EXPECT_EQ(picture.of(2, 5), (Shape{2, 5, 3, 64}));
}

TEST(FieldTensors, AreFoundByName) {
  std::vector<std::int32_t> tokens(6), lengths(2);
  FieldTensors fields;
  EXPECT_FALSE(fields.find(field::tokens));
  EXPECT_THROW(fields.at(field::tokens), Error);
  fields.set(field::tokens, {tokens.data(), {2, 3}, DType::i32});
  fields.set(field::source_lengths, {lengths.data(), {2, 1}, DType::i32});
  EXPECT_EQ(fields.at(field::tokens).data, tokens.data());
  EXPECT_EQ(fields.find(field::source_lengths).data, lengths.data());
  fields.set(field::tokens, {tokens.data() + 3, {1, 3}, DType::i32});
  EXPECT_EQ(fields.at(field::tokens).data, tokens.data() + 3) << "the last that was set";
  EXPECT_EQ(fields.entries().size(), 2u);
}

TEST(FieldTensors, HaveAPartOfEveryField) {
  std::vector<std::int32_t> tokens(6), lengths(2);
  FieldTensors fields;
  fields.set(field::tokens, {tokens.data(), {2, 3}, DType::i32});
  fields.set(field::source_lengths, {lengths.data(), {2, 1}, DType::i32});
  const FieldTensors second = fields.part(1);
  EXPECT_EQ(second.at(field::tokens).data, tokens.data() + 3);
  EXPECT_EQ(second.at(field::tokens).shape, (Shape{3}));
  EXPECT_EQ(second.at(field::source_lengths).data, lengths.data() + 1);
}

TEST(FieldTensors, HaveRoomForEight) {
  FieldTensors fields;
  for (const char* name : {"1", "2", "3", "4", "5", "6", "7", "8"}) fields.set(name, {});
  EXPECT_THROW(fields.set("9", {}), Error);
}

}  // namespace
}  // namespace mindpipe
