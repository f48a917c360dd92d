#include "comm/agreement.h"

namespace mindpipe {

Agreement::Agreement(const World& world, Waiting& waiting) : waiting_(waiting) {
  if (world.size > 1) MPI_CHECK(MPI_Comm_dup(world.comm, comm_.receive()));
}

/// A question that is open when this goes, because something failed, keeps its memory: MPI may write to it.
Agreement::~Agreement() {
  for (std::unique_ptr<Question>& question : open_)
    if (question->request != MPI_REQUEST_NULL) static_cast<void>(question.release());
}

void Agreement::ask(Numbers mine) {
  Question& question = *open_.emplace_back(std::make_unique<Question>());
  question.most = mine;
  question.mine = std::move(mine);
  if (comm_.get() == MPI_COMM_NULL) return;
  MPI_CHECK(MPI_Iallreduce(question.mine.data(), question.most.data(), static_cast<int>(question.mine.size()),
                           MPI_UINT64_T, MPI_MAX, comm_.get(), &question.request));
}

bool Agreement::is_answered(Question& question) {
  int is_done = 1;
  if (question.request != MPI_REQUEST_NULL)
    MPI_CHECK(MPI_Test(&question.request, &is_done, MPI_STATUS_IGNORE));
  return is_done != 0;
}

/// What moves one question moves all.
void Agreement::progress() {
  if (!open_.empty()) is_answered(*open_.front());
}

bool Agreement::is_answered() { return !open_.empty() && is_answered(*open_.front()); }

Agreement::Numbers Agreement::answer(const Waiting::Describe& describe) {
  MP_CHECK(!open_.empty(), "an answer is taken that nobody asked for");
  Question& question = *open_.front();
  waiting_.until([&] { return is_answered(question); }, describe);
  Numbers most = std::move(question.most);
  open_.pop_front();
  return most;
}

}  // namespace mindpipe
