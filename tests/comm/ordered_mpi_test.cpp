// ranks: 2 3 4
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "comm/channel.h"
#include "comm/group.h"
#include "comm/reduction.h"
#include "ordered_transport.h"
#include "tree.h"

namespace mindpipe {
namespace {

constexpr int vectors = 4;
constexpr int of_bulk = 1;  // the payload whose messages go through the queue of sums
constexpr std::int64_t length = 1237;

/// Messages and sums in one order for all ranks, as tickets give it.
struct Task {
  enum class Kind { message, bulk_sum, tensor_sum };
  Kind kind = Kind::message;
  int vector = 0, from = 0, to = 0, payload = 0;
  bool involves(int rank) const { return kind != Kind::message || from == rank || to == rank; }
  int stream() const {
    if (kind != Kind::message) return static_cast<int>(kind) - 1;
    return payload == of_bulk ? 2 : 3 + from * 4 + to;
  }
};

std::vector<Task> drawn_tasks(int seed, int count, int ranks) {
  const RandomStream lots{.seed = static_cast<std::uint64_t>(seed), .purpose = purpose_of("tasks")};
  std::uint64_t draw = 0;
  const auto below = [&](int n) { return static_cast<int>(lots.uniform(draw++) * n); };
  std::vector<Task> tasks;
  while (static_cast<int>(tasks.size()) < count) {
    Task task{below(4) > 0   ? Task::Kind::message
              : below(2) > 0 ? Task::Kind::bulk_sum
                             : Task::Kind::tensor_sum,
              below(vectors), below(ranks), below(ranks), below(2)};
    if (task.kind != Task::Kind::message || task.from != task.to) tasks.push_back(task);
  }
  return tasks;
}

float first_value(int rank, int vector, std::int64_t i) { return leaf(rank * vectors + vector, i); }

/// The tensors that all ranks hold when the tasks are done one after the other: the definition.
using Values = std::vector<std::vector<float>>;  ///< [rank * vectors + vector][element]
Values one_after_the_other(const std::vector<Task>& tasks, int ranks) {
  Values values(static_cast<std::size_t>(ranks * vectors), std::vector<float>(length));
  for (int rank = 0; rank < ranks; ++rank)
    for (int v = 0; v < vectors; ++v)
      for (std::int64_t i = 0; i < length; ++i) values[rank * vectors + v][i] = first_value(rank, v, i);
  for (const Task& task : tasks)
    for (std::int64_t i = 0; i < length; ++i) {
      const auto at = [&](int rank) -> float& { return values[rank * vectors + task.vector][i]; };
      if (task.kind == Task::Kind::message) {
        at(task.to) += at(task.from);
        continue;
      }
      std::vector<float> leaves;
      for (int rank = 0; rank < ranks; ++rank) leaves.push_back(at(rank));
      for (std::size_t stride = 1; stride < leaves.size(); stride *= 2)
        for (std::size_t k = 0; k + stride < leaves.size(); k += 2 * stride) leaves[k] += leaves[k + stride];
      for (int rank = 0; rank < ranks; ++rank) at(rank) = leaves[0];
    }
  return values;
}

/// One rank: a device on paper, and all that may be put into its queues.
class Station {
 public:
  Station() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    auto tensor = std::make_unique<Group>(MPI_COMM_WORLD, waiting_),
         data = std::make_unique<Group>(MPI_COMM_WORLD, waiting_);
    tensor->use(transports_.among(MPI_COMM_WORLD, Transports::Use::sums, "tensor sums"));
    data->use(transports_.among(MPI_COMM_WORLD, Transports::Use::sums, "data sums"));
    tensor_.emplace(backend_, std::move(tensor), ranks_, Axis::tensor);
    data_.emplace(backend_, std::move(data), Axis::data);
    channels_.emplace(MPI_COMM_WORLD, waiting_);
    std::vector<ChannelName> names, in_bulk;
    for (int from = 0; from < ranks_; ++from)
      for (int to = 0; to < ranks_; ++to)
        for (int payload = 0; from != to && payload < 2; ++payload)
          (payload == of_bulk ? in_bulk : names).push_back({from, to, payload});
    channels_->use(transports_, names, in_bulk);
    const std::size_t arriving = Exchange::scratch_bytes(SumTree(ranks_, ranks_), length * sizeof(float));
    tensor_->reserve(arriving);
    data_->reserve(arriving);
    for (int v = 0; v < vectors; ++v) {
      vectors_.emplace_back(Shape{length}, DType::f32);
      for (std::int64_t i = 0; i < length; ++i) set_value(vectors_[v].tensor, i, first_value(rank_, v, i));
      last_.push_back(backend_.record(Queue::compute));
    }
  }
  ~Station() { MPI_Barrier(MPI_COMM_WORLD); }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  void put_in(const Task& task) {
    const Tensor& vector = vectors_[task.vector].tensor;
    switch (task.kind) {
      case Task::Kind::message:
        if (task.from == rank_)
          in(task.payload == of_bulk ? Queue::bulk : Queue::send, task,
             [&] { channels_->send(task.to, task.payload, vector); });
        if (task.to == rank_) take_in(task);
        return;
      case Task::Kind::bulk_sum:
        return in(Queue::bulk, task, [&] { data_->sum(pieces_of(vector)); });
      case Task::Kind::tensor_sum:
        return in(Queue::compute, task, [&] { tensor_->sum(vector.reshaped({1, length}), vector); });
    }
  }
  void send(int to, int payload, const Tensor& tensor) { channels_->send(to, payload, tensor); }
  /// Lets some of what was put in happen, queues drawn by lot.
  void look() { backend_.finished(last_[0]); }
  void run_to_the_end() { backend_.synchronize(); }
  const Tensor& vector(int v) const { return vectors_[v].tensor; }
  int messages_started() const { return transports_.messages_started(); }
  int transports() const { return transports_.made(); }

 private:
  template <class PutIn>
  void in(Queue queue, const Task& task, PutIn&& put_in) {
    backend_.wait(queue, last_[task.vector]);
    backend_.use_queue(queue);
    put_in();
    backend_.use_queue(Queue::compute);
    last_[task.vector] = backend_.record(queue);
  }
  void take_in(const Task& task) {
    const Tensor arrived = arrived_.emplace_back(Shape{length}, DType::f32).tensor,
                 &vector = vectors_[task.vector].tensor;
    const Queue queue = task.payload == of_bulk ? Queue::bulk : Queue::receive;
    backend_.use_queue(queue);
    channels_->receive(task.from, task.payload, arrived);
    backend_.use_queue(Queue::compute);
    backend_.wait(Queue::compute, backend_.record(queue));
    in(Queue::compute, task, [&] { backend_.add({vector, arrived, vector}); });
  }
  std::vector<Tensor> pieces_of(const Tensor& vector) const {
    std::vector<Tensor> pieces;
    for (int r = 0; r < ranks_; ++r)
      pieces.push_back(vector.range(length * r / ranks_, length * (r + 1) / ranks_ - length * r / ranks_));
    return pieces;
  }
  static int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
  }

  int rank_ = 0, ranks_ = 1;
  Memory memory_{Memory::Kind::host};
  LateBackend backend_{std::make_unique<PlainBackend>(memory_), world_rank()};
  OrderedTransports transports_{backend_, MPI_COMM_WORLD};
  Waiting waiting_;
  std::optional<Communicator> tensor_;
  std::optional<Reductions> data_;
  std::optional<Channels> channels_;
  std::vector<Block> vectors_;
  std::deque<Block> arrived_;
  std::vector<std::uint64_t> last_;  ///< behind what was last put in for each vector
};

void expect_values(const Station& station, const Values& wanted, int seed) {
  for (int v = 0; v < vectors; ++v)
    for (std::int64_t i = 0; i < length; ++i)
      ASSERT_EQ(value_of(station.vector(v), i), wanted[station.rank() * vectors + v][i])
          << "seed " << seed << ", vector " << v << ", " << i;
}

TEST(OrderedTransport, AnyOrderThatAllRanksKeepGivesTheBitsOfOneAfterTheOther) {
  for (int seed = 0; seed < 25; ++seed) {
    Station station;
    const std::vector<Task> tasks = drawn_tasks(seed, 40, station.ranks());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      station.put_in(tasks[i]);
      if (static_cast<int>(i) % 3 == seed % 3) station.look();
    }
    station.run_to_the_end();
    EXPECT_GE(station.messages_started(), std::count_if(tasks.begin(), tasks.end(), [&](const Task& t) {
                return t.involves(station.rank());
              }));
    expect_values(station, one_after_the_other(tasks, station.ranks()), seed);
  }
}

TEST(OrderedTransport, ChannelsOfOneQueueShareATransport) {
  const Station station;
  const int sums = 2, there_and_back = 2 * (station.ranks() - 1), shared = 1;
  EXPECT_EQ(station.transports(), sums + there_and_back + shared);
}

/// Two tasks of ranks 0 and 1 that use different transports.
std::pair<std::size_t, std::size_t> two_to_swap(const std::vector<Task>& tasks) {
  const auto both = [](const Task& t) { return t.involves(0) && t.involves(1); };
  for (std::size_t i = tasks.size() / 2; i < tasks.size(); ++i)
    for (std::size_t j = i + 1; both(tasks[i]) && j < tasks.size(); ++j)
      if (both(tasks[j]) && tasks[i].stream() != tasks[j].stream()) return {i, j};
  return {0, 0};
}

TEST(OrderedTransport, TwoSwappedOnOneRankAreFoundAndNamed) {
  for (int seed = 100; seed < 110; ++seed) {
    Station station;
    std::vector<Task> tasks = drawn_tasks(seed, 40, station.ranks());
    const auto [one, other] = two_to_swap(tasks);
    ASSERT_LT(one, other);
    if (station.rank() == 0) std::swap(tasks[one], tasks[other]);
    for (const Task& task : tasks) station.put_in(task);
    std::string said;
    try {
      station.run_to_the_end();
    } catch (const Error& error) {
      said = error.what();
    }
    if (station.rank() > 1) continue;  // a rank that they do not need may reach its end
    EXPECT_THAT(said, ::testing::HasSubstr("along orders that run in a circle: rank ")) << "seed " << seed;
    EXPECT_THAT(said, ::testing::HasSubstr("rank 0 has come to ")) << "seed " << seed;
    EXPECT_THAT(said, ::testing::HasSubstr("rank 1 has come to ")) << "seed " << seed;
  }
}

TEST(OrderedTransport, EndsThatDoNotMeanTheSameMessageAreFoundAndNamed) {
  Station station;
  Block long_one({length + 1}, DType::f32);
  std::string said;
  try {
    station.put_in({Task::Kind::message, 0, 0, 1, 1});
    if (station.rank() == 0) station.send(1, 0, long_one.tensor);
    else if (station.rank() == 1) station.put_in({Task::Kind::message, 0, 0, 1, 0});
    station.run_to_the_end();
  } catch (const Error& error) {
    said = error.what();
  }
  const bool takes_part = station.rank() <= 1;
  EXPECT_THAT(said,
              ::testing::HasSubstr(takes_part ? "channel 0 from rank 0 to rank 1, number 0: rank" : ""));
}

}  // namespace
}  // namespace mindpipe
