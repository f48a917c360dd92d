#include "corpus/pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <numeric>

#include "corpus/corpus.h"
#include "corpus/files.h"

namespace mindpipe {
namespace {

using testing::ElementsAre;

std::vector<Field> picture_fields(int rows, int width, int classes, int planes) {
  return {{field::picture, DType::u8, {rows, width}, 0, planes}, {field::targets, DType::i32, {1}, classes}};
}
struct PictureSample {
  std::vector<std::uint8_t> pixels;
  std::int32_t label = -7;
  bool operator==(const PictureSample&) const = default;
};
PictureSample picture_at(Corpus& corpus, std::int64_t index, int rows, int width) {
  PictureSample s{std::vector<std::uint8_t>(rows * width)};
  FieldTensors to;
  to.set(field::picture, {s.pixels.data(), {1, rows, width}, DType::u8});
  to.set(field::targets, {&s.label, {1, 1}, DType::i32});
  corpus.batch(index, to);
  return s;
}
Corpus open_pictures(const std::string& path, int rows, int width, int classes,
                     Subset subset = Subset::validation, DataConfig data = {}, int planes = 1) {
  data.train = data.validation = {{path, 1}};
  return Corpus(data, subset, picture_fields(rows, width, classes, planes), 1);
}
/// Pictures of 32 x 32 pixels, which have three channels.
Corpus open_in_colour(const std::string& path, int classes, Subset subset = Subset::validation) {
  return open_pictures(path, 96, 32, classes, subset, {}, 3);
}
std::string big_endian(std::initializer_list<std::uint32_t> numbers) {
  std::string bytes;
  for (const std::uint32_t n : numbers)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift & 255);
  return bytes;
}
/// Two pictures of 2 x 3 pixels: 1 to 6 with label 4, 7 to 12 with label 9.
std::string write_idx(const Folder& folder, const std::string& labels = "\x04\x09", std::size_t cut = 0) {
  std::string pixels(12, 0);
  std::iota(pixels.begin(), pixels.end(), char{1});
  std::string file = big_endian({2051, 2, 2, 3}) + pixels;
  file.resize(file.size() - cut);
  write_file(folder / "t-images-idx3-ubyte", file);
  write_file(folder / "t-labels-idx1-ubyte",
             big_endian({2049, static_cast<std::uint32_t>(labels.size())}) + labels);
  return folder / "t-images-idx3-ubyte";
}
void pack(const std::string& from) {
  const std::string bytes = read_file(from);
  gzFile file = gzopen((from + ".gz").c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

TEST(Pictures, OfIdxFilesPlainAndPacked) {
  const Folder folder;
  const std::string path = write_idx(folder);
  pack(path);
  pack(folder / "t-labels-idx1-ubyte");
  for (const std::string& file : {path, path + ".gz"}) {
    Corpus corpus = open_pictures(file, 2, 3, 10);
    const PictureSample second = picture_at(corpus, 1, 2, 3);
    EXPECT_THAT(second.pixels, ElementsAre(7, 8, 9, 10, 11, 12));
    EXPECT_EQ(second.label, 9);
    EXPECT_EQ(picture_at(corpus, 2, 2, 3), picture_at(corpus, 0, 2, 3)) << "round after round";
  }
}

TEST(Pictures, OfCifarFilesHaveTheirLabelsInFront) {
  const Folder folder;
  std::string ten, hundred;
  for (int i = 0; i < 2; ++i) {
    std::string pixels(3072, static_cast<char>(10 + i));
    pixels[1024] = 77;  // the second channel's first
    ten += std::string(1, static_cast<char>(3 + i)) + pixels;
    hundred += std::string(1, 0) + std::string(1, static_cast<char>(98 + i)) + pixels;
  }
  write_file(folder / "ten.bin", ten);
  write_file(folder / "hundred.bin", hundred);
  Corpus of_ten = open_in_colour("cifar10:" + (folder / "ten.bin"), 10),
         of_hundred = open_in_colour("cifar100:" + (folder / "hundred.bin"), 100);
  const PictureSample a = picture_at(of_ten, 1, 96, 32), b = picture_at(of_hundred, 1, 96, 32);
  EXPECT_EQ(a.label, 4);
  EXPECT_EQ(b.label, 99);
  EXPECT_EQ(a.pixels, b.pixels);
  EXPECT_EQ(a.pixels[0], 11);
  EXPECT_EQ(a.pixels[32 * 32], 77);
  expect_error(Exit::bad_configuration,
               "have 3 x 32 x 32 numbers (channels, rows, pixels of a row), and the "
               "model reads 1 x 96 x 32; set",
               [&] { open_pictures("cifar10:" + (folder / "ten.bin"), 96, 32, 10); });
  expect_error(Exit::bad_configuration,
               "have 1 x 32 x 32 numbers (channels, rows, pixels of a row), and the "
               "model reads 1 x 64 x 32; set",
               [] { open_pictures("synthetic:shapes", 64, 32, 6); });
  expect_error(
      Exit::bad_configuration,
      "model.classes is 1000 (" + (folder / "ten.bin") + " is named as a file of CIFAR-10); set it to 10",
      [&] { open_in_colour("cifar10:" + (folder / "ten.bin"), 1000); });
}

TEST(Pictures, AreMirroredAndMovedInTrainingAlone) {
  const Folder folder;
  const std::string path = write_idx(folder);
  DataConfig data;
  data.flip = true;
  data.crop = 1;
  Corpus trained = open_pictures(path, 2, 3, 10, Subset::train, data),
         held = open_pictures(path, 2, 3, 10, Subset::validation, data);
  EXPECT_THAT(picture_at(held, 0, 2, 3).pixels, ElementsAre(1, 2, 3, 4, 5, 6));
  std::vector<std::vector<std::uint8_t>> seen;
  for (int i = 0; i < 400; ++i) {
    const PictureSample s = picture_at(trained, i, 2, 3);
    if (s.label == 4) seen.push_back(s.pixels);
    EXPECT_EQ(s, picture_at(trained, i, 2, 3)) << "a function of the sample's number";
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 18u) << "two ways round, three places down and three across";
  EXPECT_THAT(seen, testing::Contains(ElementsAre(3, 2, 1, 6, 5, 4)));
  EXPECT_THAT(seen, testing::Contains(ElementsAre(0, 1, 2, 0, 4, 5)));
  EXPECT_THAT(seen, testing::Contains(ElementsAre(4, 5, 6, 0, 0, 0)));
}

TEST(Pictures, OfSeveralChannelsHaveAnExtentMore) {
  const Folder folder;
  std::string pixels(24, 0);
  std::iota(pixels.begin(), pixels.end(), char{1});
  const std::string path = folder / "t-images-idx4-ubyte";
  write_file(path, big_endian({2052, 2, 2, 2, 3}) + pixels);
  write_file(folder / "t-labels-idx1-ubyte", big_endian({2049, 2}) + "\x04\x09");
  Corpus corpus = open_pictures(path, 4, 3, 10, Subset::validation, {}, 2);
  const PictureSample second = picture_at(corpus, 1, 4, 3);
  EXPECT_THAT(second.pixels, ElementsAre(13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24));
  EXPECT_EQ(second.label, 9);
  write_file(path, big_endian({2051, 2, 2, 2, 3}) + pixels);
  expect_error(Exit::bad_data, "begins with 0x00000803, and an IDX file of pictures with 0x00000804",
               [&] { open_pictures(path, 4, 3, 10, Subset::validation, {}, 2); });
  write_file(path, big_endian({2052, 2, 2, 0, 3}) + pixels);
  expect_error(Exit::bad_data, "its head says 2 channels of 0 x 3 pixels",
               [&] { open_pictures(path, 4, 3, 10, Subset::validation, {}, 2); });
}

TEST(Pictures, OfIdxFilesMayHaveLongLabels) {
  const Folder folder;
  const std::string path = write_idx(folder), labels = folder / "t-labels-idx1-ubyte",
                    shorts{"\x03\xe7\x00\x05", 4};
  for (const std::string& file : {big_endian({0xc01, 2, 999, 5}), big_endian({0xb01, 2}) + shorts}) {
    write_file(labels, file);
    Corpus corpus = open_pictures(path, 2, 3, 1000);
    EXPECT_EQ(picture_at(corpus, 0, 2, 3).label, 999);
    EXPECT_EQ(picture_at(corpus, 1, 2, 3).label, 5);
  }
  expect_error(Exit::bad_data, "t-labels-idx1-ubyte: the label at byte 8 is 999, and the model has 999",
               [&] { open_pictures(path, 2, 3, 999); });
  write_file(labels, big_endian({0xc01, 2, 999}));
  expect_error(Exit::bad_data, "has 12 bytes, and its head promises 2 items of 4",
               [&] { open_pictures(path, 2, 3, 1000); });
}

TEST(Pictures, SayWhatIsWrong) {
  const Folder folder;
  std::string path = write_idx(folder, "\x04\x0a");
  expect_error(Exit::bad_data, "t-labels-idx1-ubyte: the label at byte 9 is 10, and the model has 10 classes",
               [&] { open_pictures(path, 2, 3, 10); });
  expect_error(Exit::bad_configuration,
               "have 1 x 2 x 3 numbers (channels, rows, pixels of a row), and the model reads 1 x 32 x 32; "
               "set model.channels, model.picture_height and model.picture_width to 1, 2 and 3",
               [&] { open_pictures(path, 32, 32, 11); });
  path = write_idx(folder, "\x04");
  expect_error(Exit::bad_data, "has 2 pictures, and", [&] { open_pictures(path, 2, 3, 10); });
  path = write_idx(folder, "\x04\x05", 1);
  expect_error(Exit::bad_data, "t-images-idx3-ubyte: has 27 bytes, and its head promises 2 items of 6",
               [&] { open_pictures(path, 2, 3, 10); });
  write_file(path, big_endian({2051, 2}));
  expect_error(Exit::bad_data, "ends after 8 bytes, within its head", [&] { open_pictures(path, 2, 3, 10); });
  write_file(path, big_endian({2049, 2, 2, 3}));
  expect_error(Exit::bad_data, "begins with 0x00000801, and an IDX file of pictures with 0x00000803",
               [&] { open_pictures(path, 2, 3, 10); });
  path = write_idx(folder);
  pack(path);
  const std::string packed = read_file(path + ".gz");
  write_file(path + ".gz", packed.substr(0, packed.size() - 9));
  expect_error(Exit::bad_data, "cannot be unpacked", [&] { open_pictures(path + ".gz", 2, 3, 10); });
  write_file(folder / "short.bin", std::string(3072, 'x'));
  expect_error(Exit::bad_data, "has 3072 bytes, which are no whole records of 3073",
               [&] { open_in_colour("cifar10:" + (folder / "short.bin"), 10); });
  expect_error(
      Exit::bad_configuration,
      "synthetic:arithmetic holds texts, and the model classifies pictures; name a source of its own "
      "kind (an IDX file with images-idx3 or images-idx4 in its name, cifar10:FILE,",
      [&] { open_pictures("synthetic:arithmetic", 32, 32, 6); });
  expect_error(Exit::bad_configuration, "synthetic:shape is nothing that the program can make",
               [&] { open_pictures("synthetic:shape", 32, 32, 6); });
  expect_error(Exit::bad_configuration,
               "data.train[0]: synthetic:shapes holds pictures, and the model reads texts; name", [] {
                 Corpus(from("synthetic:shapes"), Subset::train,
                        {{field::tokens, DType::i32, {4}, 260}, {field::targets, DType::i32, {4}, 260}}, 1);
               });
  expect_error(Exit::bad_configuration, "synthetic:shapes has 6",
               [] { open_pictures("synthetic:shapes", 32, 32, 5); });
}

TEST(Shapes, CanBeToldApartAndAreEachAsOftenThere) {
  Corpus corpus = open_in_colour("synthetic:shapes", 6, Subset::train);
  const PictureSample first = picture_at(corpus, 0, 96, 32);
  EXPECT_EQ(first.label, 0);
  EXPECT_EQ(picture_at(corpus, 7, 96, 32).label, 1);
  EXPECT_NE(first.pixels, picture_at(corpus, 6, 96, 32).pixels);
  for (std::int64_t i = 0; i < 60; ++i) {
    const PictureSample s = picture_at(corpus, i, 96, 32);
    const auto [low, high] = std::minmax_element(s.pixels.begin(), s.pixels.begin() + 1024);
    EXPECT_GT(*high - *low, 80) << "picture " << i << " shows something";
  }
  Corpus held = open_in_colour("synthetic:shapes", 6);
  EXPECT_NE(picture_at(held, 0, 96, 32).pixels, first.pixels);
}

}  // namespace
}  // namespace mindpipe
