#include "app/train/wishes.h"

#include "app/train/stop_request.h"
#include "config/config.h"

namespace mindpipe {

Wishes::Wishes(Run& run, RunDirectory* directory, Saves& saves, const EndReport& report)
    : run_(run),
      directory_(directory),
      saves_(saves),
      report_(report),
      walltime_(run.config().run.max_walltime) {}

Wishes::Stop Wishes::to_stop(std::int64_t done, std::int64_t ahead) const {
  if (directory_ != nullptr && directory_->stop_asked()) return by_file;
  if (stop_asked()) return by_signal_or_time;
  if (!run_.is_rank_0() || walltime_ == 0) return no_stop;
  const double seconds = static_cast<double>(ahead) * report_.seconds_each();
  const bool is_late = run_.seconds() + seconds + saves_.seconds_to_save(done, ahead) > walltime_;
  return is_late ? by_signal_or_time : no_stop;
}

void Wishes::ask(std::int64_t done, std::int64_t ahead, const Numbers& own) {
  Numbers mine(of_all_kinds);
  mine[stops] = to_stop(done, ahead);
  mine[saves_by_time] = saves_.due_by_time() ? 1 : 0;
  mine[writes] = saves_.writes() ? 1 : 0;
  mine.insert(mine.end(), own.begin(), own.end());
  run_.worker().wiring().agreement->ask(std::move(mine));
}

void Wishes::hear(const std::string& newest) {
  heard_ = run_.worker().wiring().agreement->answer(
      [&] { return fmt::format("all ranks to say what they wish after {}", newest); });
}

}  // namespace mindpipe
