#include "comm/wire.h"

#include <utility>

namespace mindpipe {

Wire::Wire(const Route& route, Way way, void* data, std::size_t bytes, int peer, int tag, MPI_Comm comm)
    : route_(route), way_(way), data_(data), bytes_(bytes), peer_(peer), tag_(tag), comm_(comm) {
  if (route_.ports != nullptr) {
    meet();
    return;
  }
  if (route_.kind == Route::Kind::staged) block_ = route_.staging->take(bytes_);
  if (route_.kind == Route::Kind::staged && way_ != Way::receive) {
    event_ = route_.staging->copy_out(data_, block_, bytes_);
    stage_ = Stage::copying_out;
  } else {
    hand_over();
  }
}

Wire::Wire(Wire&& other) noexcept
    : route_(other.route_),
      way_(other.way_),
      stage_(std::exchange(other.stage_, Stage::over)),
      data_(other.data_),
      block_(std::exchange(other.block_, nullptr)),
      bytes_(other.bytes_),
      received_(other.received_),
      peer_(other.peer_),
      tag_(other.tag_),
      comm_(other.comm_),
      request_(std::exchange(other.request_, MPI_REQUEST_NULL)),
      event_(other.event_),
      paper_(std::move(other.paper_)) {}

/// Gives up a message that is not done: MPI may still write to its memory, so a block is not used again.
Wire::~Wire() {
  if (request_ == MPI_REQUEST_NULL || !mpi_is_up()) return;
  MPI_Request_free(&request_);
  static_cast<void>(paper_.release());
}

void Wire::hand_over() {
  const bool empty = route_.kind == Route::Kind::counted;
  const int count = empty ? 0 : static_cast<int>(bytes_);
  void* data = empty ? nullptr : place();
  switch (way_) {
    case Way::send:
      MPI_CHECK(MPI_Isend(data, count, MPI_BYTE, peer_, tag_, comm_, &request_));
      break;
    case Way::send_when_met:
      MPI_CHECK(MPI_Issend(data, count, MPI_BYTE, peer_, tag_, comm_, &request_));
      break;
    case Way::receive:
      MPI_CHECK(MPI_Irecv(data, count, MPI_BYTE, peer_, tag_, comm_, &request_));
      break;
  }
  stage_ = Stage::with_mpi;
}

namespace {

/// Words of receivers travel under tags of their own, above all others and within what MPI grants.
constexpr int first_word_tag = 1 << 14, first_arrival_tag = 3 << 13;

/// Whether the sender is told when a message has arrived: the next move leaves then, wherever it goes.
bool tells_arrival(TrafficClass traffic) { return traffic == TrafficClass::moves; }

}  // namespace

Wire::OnPaper::~OnPaper() {
  if (word_request != MPI_REQUEST_NULL && mpi_is_up()) MPI_Request_free(&word_request);
}

void Wire::OnPaper::end_at(std::int64_t time) {
  ended = time + notice.latency;
  knows_end = true;
}

bool Wire::OnPaper::has_said() {
  if (word_request == MPI_REQUEST_NULL) return true;
  int is_done = 0;
  MPI_CHECK(MPI_Test(&word_request, &is_done, MPI_STATUS_IGNORE));
  return is_done != 0;
}

/// The receiver's word goes ahead, and it listens for the notice; the sender listens for the word.
void Wire::meet() {
  MP_CHECK(tag_ < first_word_tag, "tag {} is among those of words", tag_);
  paper_ = std::make_unique<OnPaper>();
  const int word_tag = first_word_tag + tag_;
  if (way_ != Way::receive) {
    MPI_CHECK(MPI_Irecv(&paper_->word, 1, MPI_INT64_T, peer_, word_tag, comm_, &request_));
    stage_ = Stage::awaits_word;
    return;
  }
  paper_->word = route_.moment;
  MPI_CHECK(MPI_Isend(&paper_->word, 1, MPI_INT64_T, peer_, word_tag, comm_, &paper_->word_request));
  MPI_CHECK(MPI_Irecv(&paper_->notice, sizeof(paper_->notice), MPI_BYTE, peer_, tag_, comm_, &request_));
  stage_ = Stage::with_mpi;
}

/// Both ends are there: the message stands ready at the out port.
void Wire::take_word() {
  const Link& link = route_.link;
  const auto bytes = static_cast<std::int64_t>(bytes_);
  paper_->number =
      route_.ports->offer(link.level, route_.traffic, peer_, route_.price.value_or(link.carries(bytes)),
                          std::max(route_.moment, paper_->word));
  stage_ = Stage::at_port;
}

void Wire::take_notice() {
  MPI_CHECK(MPI_Request_free(&paper_->word_request));  // it has been heard
  const OnPaper::Notice& notice = paper_->notice;
  paper_->number =
      route_.ports->expect(static_cast<Level>(notice.level), static_cast<TrafficClass>(notice.traffic), peer_,
                           notice.began, notice.left);
  stage_ = Stage::passes;
}

/// Asks the ports for what the message waits for there.
void Wire::hear_of_port() {
  OnPaper& paper = *paper_;
  if (stage_ == Stage::at_port) {
    const auto begun = route_.ports->take_begun(paper.number);
    if (!begun) return;
    paper.notice = {begun->first, begun->second, route_.link.latency,
                    static_cast<std::int64_t>(route_.traffic), static_cast<std::int64_t>(route_.link.level)};
    const bool waits = tells_arrival(route_.traffic);
    MPI_CHECK(MPI_Isend(&paper.notice, sizeof(paper.notice), MPI_BYTE, peer_, tag_, comm_,
                        waits ? &paper.word_request : &request_));
    if (waits)
      MPI_CHECK(MPI_Irecv(&paper.word, 1, MPI_INT64_T, peer_, first_arrival_tag + tag_, comm_, &request_));
    stage_ = Stage::with_mpi;
  }
  if (stage_ != Stage::passes) return;
  if (way_ == Way::receive && !paper.knows_end)
    if (const auto arrived = route_.ports->take_arrived(paper.number)) take_arrival(*arrived);
  if (paper.knows_end && now_ns() >= paper.ended && paper.has_said()) stage_ = Stage::over;
}

/// The receiver knows when a message has arrived.
void Wire::take_arrival(std::int64_t time) {
  paper_->end_at(time);
  if (!tells_arrival(static_cast<TrafficClass>(paper_->notice.traffic))) return;
  paper_->word = time;
  MPI_CHECK(MPI_Isend(&paper_->word, 1, MPI_INT64_T, peer_, first_arrival_tag + tag_, comm_,
                      &paper_->word_request));
}

bool Wire::done() {
  if (paper_) hear_of_port();
  if (stage_ == Stage::copying_out && route_.staging->finished(event_)) hand_over();
  if (stage_ == Stage::copying_in && route_.staging->finished(event_)) end();
  return stage_ == Stage::over;
}

bool Wire::pending() const {
  if (stage_ != Stage::with_mpi && stage_ != Stage::awaits_word) return stage_ != Stage::over;
  int is_done = 0;
  MPI_CHECK(MPI_Request_get_status(request_, &is_done, MPI_STATUS_IGNORE));
  return is_done == 0;
}

void Wire::arrive(MPI_Status& status) {
  request_ = MPI_REQUEST_NULL;
  if (paper_) {
    received_ = bytes_;
    if (stage_ == Stage::awaits_word) return take_word();
    if (way_ == Way::receive) return take_notice();
    stage_ = Stage::passes;
    return paper_->end_at(tells_arrival(route_.traffic) ? paper_->word : paper_->notice.left);
  }
  if (way_ == Way::receive) {
    int count = 0;
    MPI_CHECK(MPI_Get_count(&status, MPI_BYTE, &count));
    received_ = route_.kind == Route::Kind::counted ? bytes_ : static_cast<std::size_t>(count);
  }
  if (route_.kind != Route::Kind::staged || way_ != Way::receive) return end();
  event_ = route_.staging->copy_in(block_, data_, bytes_);
  stage_ = Stage::copying_in;
}

void Wire::end() {
  if (block_ != nullptr) route_.staging->give_back(std::exchange(block_, nullptr), bytes_);
  stage_ = Stage::over;
}

void Inquiry::about(Wire& wire) {
  if (wire.stage_ != Wire::Stage::with_mpi && wire.stage_ != Wire::Stage::awaits_word) return;
  wires_.push_back(&wire);
  requests_.push_back(wire.request_);
}

void Inquiry::ask() {
  if (wires_.empty()) return;
  ended_.resize(wires_.size());
  statuses_.resize(wires_.size());
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, ended_.data(),
                                statuses_.data());
  if (code != MPI_ERR_IN_STATUS) MPI_CHECK(code);
  for (int i = 0; i < count; ++i) {
    if (code == MPI_ERR_IN_STATUS) MPI_CHECK(statuses_[i].MPI_ERROR);
    wires_[ended_[i]]->arrive(statuses_[i]);
  }
  wires_.clear();
  requests_.clear();
}

}  // namespace mindpipe
