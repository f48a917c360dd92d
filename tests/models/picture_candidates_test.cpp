#include "models/picture_candidates.h"

#include "layers/gradient_check.h"
#include "layers/pictures.h"
#include "models/small.h"
#include "supernet/subnet.h"

namespace mindpipe::testing {
namespace {

/// A space of one word: block 0 halves pictures of 12 x 8 pixels, block 1 keeps 8 channels of 6 x 4, block 2
/// halves them and gives 12 channels.
Config with_picture_word(const std::string& word) {
  Config config;
  choose(config,
         fmt::format("{{name: one, pictures: {{groups: [{{blocks: 2, width: 8}}, {{blocks: 1, width: 12}}], "
                     "candidates: [{}]}}}}",
                     word),
         {0, 0, 0});
  config.model.subnet.picture_height = 12;
  config.model.subnet.picture_width = 8;
  return config;
}

const std::vector<std::string> picture_words{"conv-1",    "conv-3", "conv-5",    "separable-3", "separable-5",
                                             "dilated-3", "max-3",  "average-3", "average-5",   "identity"};

PictureCandidates candidates_of(const Config& config, const LayerContext& context, bool runs) {
  return {config.model.subnet, context, BatchNormSpec{0, false, 1e-5, 0.1, runs}};
}

Subject::Build block_of_pictures(const Config& config, int block, bool runs = true) {
  return [=](Subject& s) {
    const bool has_unit = has_parameters(config.model.subnet.space.candidates(block)[0]);
    s.add(candidates_of(config, s.context(), runs)
              .make(block, 0, has_unit ? &s.unit(candidate_name(block, 0)) : nullptr));
  };
}

Setting of_pictures() {
  Setting setting;
  setting.rows = 24;
  setting.width = 8;
  setting.step = 1e-6;  // relus and largest numbers have kinks
  setting.tolerance = 3e-7;
  return setting;
}

TEST(PictureCandidateGradients, OfEveryWord) {
  for (const std::string& word : picture_words)
    for (const int block : {1, 2})
      for (const bool runs : {true, false}) {
        SCOPED_TRACE(fmt::format("{} where the picture is {}", word, block == 1 ? "kept" : "halved"));
        check_gradients(of_pictures(), block_of_pictures(with_picture_word(word), block, runs));
      }
}

TEST(PictureCandidates, ThatHalveHaveUnitsAndOthersWhereTheyConvolve) {
  for (const std::string& word : picture_words) {
    const Config config = with_picture_word(word);
    const bool convolves = word != "identity" && !word.starts_with("max") && !word.starts_with("average");
    for (int block = 0; block < 3; ++block)
      EXPECT_EQ(has_parameters(config.model.subnet.space.candidates(block)[0]), block != 1 || convolves)
          << word;
  }
}

/// Parameters of each candidate of a block.
std::vector<std::int64_t> parameters_of_pictures(const Config& config, int block) {
  std::vector<std::int64_t> all;
  Subject subject(of_pictures(), [&](Subject& s) {
    const PictureCandidates candidates = candidates_of(config, s.context(), false);
    for (int number = 0; number < static_cast<int>(config.model.subnet.space.candidates(block).size());
         ++number) {
      Unit unit(candidate_name(block, number));
      candidates.make(block, number, &unit);
      all.push_back(unit.parameters());
    }
  });
  return all;
}

TEST(PictureCandidates, HaveAsManyParametersAsTheirFormulasSay) {
  Config config;
  choose(config, "cv.c3", std::vector<int>(32, 0));
  config.model.subnet.picture_height = config.model.subnet.picture_width = 32;
  const auto counts = [](std::int64_t inputs, std::int64_t outputs, bool halves) {
    std::vector<std::int64_t> all;
    for (const std::int64_t k : {3, 5, 7, 9}) all.push_back(k * k * inputs * outputs + 2 * outputs);
    for (const std::int64_t k : {3, 5, 7, 3, 5})
      all.push_back(k * k * inputs + inputs * outputs + 2 * outputs);
    for (int i = 0; i < 3; ++i) all.push_back(halves ? inputs * outputs + 2 * outputs : 0);
    return all;
  };
  EXPECT_EQ(parameters_of_pictures(config, 0), counts(64, 64, true));
  EXPECT_EQ(parameters_of_pictures(config, 7), counts(64, 64, false));
  EXPECT_EQ(parameters_of_pictures(config, 8), counts(64, 128, true));
  EXPECT_EQ(parameters_of_pictures(config, 31), counts(512, 512, false));
  std::int64_t all = 0, four_times = 0;
  Config c1 = config;
  c1.model.subnet.space = space_from("cv.c1");
  for (int block = 0; block < 32; ++block) {
    for (const std::int64_t count : parameters_of_pictures(config, block)) all += count;
    for (const std::int64_t count : parameters_of_pictures(c1, block)) four_times += count;
  }
  EXPECT_EQ(four_times, 4 * all);
}

/// A stem and its norm as they stand in a space.
TEST(PictureStems, WithABatchNormHaveItsGradients) {
  Setting setting = of_pictures();
  setting.activation = false;
  setting.picture = {2, 6, 4, 1};
  for (int channel = 0; channel < 2; ++channel) {
    setting.picture.mean[channel] = 0.5F;
    setting.picture.deviation[channel] = 0.2F;
  }
  setting.rows = 24;
  check_gradients(setting, [&](Subject& s) {
    s.add(std::make_unique<PictureStem>(s.context(), s.unit("stem"), setting.picture,
                                        Conv2DSpec{"conv", 2, 8, {6, 4, 3, 1, 1}, Split::none, 0.3},
                                        BatchNormSpec{8, false}));
  });
}

}  // namespace
}  // namespace mindpipe::testing
