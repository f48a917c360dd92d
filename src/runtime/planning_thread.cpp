#include "runtime/planning_thread.h"

#include "core/check.h"
#include "program/lists/stretches.h"

namespace mindpipe {

PlanningThread::PlanningThread(std::unique_ptr<Stretches> stretches, std::unique_ptr<Sampler> stream)
    : stretches_(std::move(stretches)), stream_(std::move(stream)), thread_([this] { run(); }) {}

PlanningThread::~PlanningThread() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void PlanningThread::ask(Question question) {
  MP_CHECK(!is_open_, "a stretch is asked for before the one before was taken");
  is_open_ = true;
  {
    const std::lock_guard lock(mutex_);
    question_ = std::move(question);
  }
  changed_.notify_one();
}

PlannedStretch PlanningThread::take() {
  MP_CHECK(is_open_ && is_ready(), "a stretch is taken that is not there");
  is_open_ = false;
  is_ready_.store(false, std::memory_order_relaxed);
  if (trouble_) std::rethrow_exception(std::exchange(trouble_, nullptr));
  PlannedStretch planned = std::move(*planned_);
  planned_.reset();
  return planned;
}

void PlanningThread::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stops_ || question_.has_value(); });
    if (stops_) return;
    Question question = std::move(*question_);
    question_.reset();
    lock.unlock();
    try {
      planned_ = plan(std::move(question));
    } catch (...) {
      trouble_ = std::current_exception();
    }
    is_ready_.store(true, std::memory_order_release);
  }
}

PlannedStretch PlanningThread::plan(Question question) {
  PlannedStretch planned{.subnets = std::move(question.subnets), .last = question.last};
  for (; question.draws > 0; --question.draws) planned.subnets.push_back(stream_->next());
  planned.list = std::move(stretches_->next(planned.subnets, question.last).front());
  planned.end = stretches_->planner().known();
  planned.ended = stretches_->planner().oldest();
  planned.hash = stretches_->digest();
  return planned;
}

}  // namespace mindpipe
