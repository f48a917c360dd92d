#include "plan/searched_settings.h"

#include "core/text.h"

namespace mindpipe {
namespace {

using Choice = const LayoutChoice&;
using Free = SearchFreedom;

constexpr bool yes = true, no = false;

template <class T>
std::string text(const T& value) {
  return fmt::format("{}", value);
}

/// Whether a search of this freedom chooses the setting. Cuts are chosen with the fates of tapes, too.
bool is_free(const SearchedSetting& setting, const SearchFreedom& free) {
  return free.*setting.free || (setting.free == &SearchFreedom::cuts && (free.swap || free.recompute));
}

}  // namespace

const std::vector<SearchedSetting>& searched_settings() {
  static const std::vector<SearchedSetting> all = {
      // key, freedom, value, of steps, of subnets, said where
      {"grid.supernet", &Free::supernet, [](Choice l) { return text(l.grid.supernet); }, no, yes},
      {"grid.pipeline", &Free::pipeline, [](Choice l) { return text(l.grid.pipeline); }, yes, yes},
      {"grid.data", &Free::data, [](Choice l) { return text(l.grid.data); }, yes, yes},
      {"grid.tensor", &Free::tensor, [](Choice l) { return text(l.grid.tensor); }, yes, yes},
      {"schedule.kind", &Free::schedule, [](Choice l) { return text(l.schedule); }, yes, no},
      {"schedule.chunks", &Free::chunks, [](Choice l) { return text(l.chunks); }, yes, no,
       [](Choice l) { return l.chunks > 1; }},
      {.key = "schedule.cuts",
       .free = &Free::cuts,
       .value = [](Choice l) { return "[" + joined(l.cuts) + "]"; },
       .of_steps = yes,
       .of_subnets = no,
       .is_said = [](Choice l) { return !l.cuts.empty(); },
       .is_compared = false},
      {"train.zero", &Free::zero, [](Choice l) { return text(l.zero); }, yes, no,
       [](Choice l) { return l.grid.data > 1; }},
      {"train.recompute", &Free::recompute, [](Choice l) { return l.recompute.text(); }, yes, no},
      {.key = "train.swap",
       .free = &Free::swap,
       .value = [](Choice l) { return l.swap.text(); },
       .of_steps = yes,
       .of_subnets = no,
       .is_for_the_asking = true},
      {"train.sequence_parallel", &Free::sequence_parallel,
       [](Choice l) { return text(l.sequence_parallel); }, yes, no,
       [](Choice l) { return l.grid.tensor > 1; }},
      {.key = "train.micro_batch",
       .free = &Free::micro_batch,
       .value = [](Choice l) { return text(l.micro_batch); },
       .of_steps = yes,
       .of_subnets = yes,
       .is_for_the_asking = true},
      {"supernet.cuts", &Free::subnet_cuts, [](Choice l) { return text(l.subnet_cuts); }, no, yes},
  };
  return all;
}

std::vector<std::string> settings_with(const LayoutChoice& layout, const SearchFreedom& free) {
  std::vector<std::string> words;
  for (const SearchedSetting& setting : searched_settings())
    if (is_free(setting, free) && (!setting.is_said || setting.is_said(layout)))
      words.push_back(fmt::format("{}={}", setting.key, setting.value(layout)));
  return words;
}

std::string words_of(const LayoutChoice& layout, const SearchFreedom& free) {
  return join(settings_with(layout, free), " ");
}

}  // namespace mindpipe
