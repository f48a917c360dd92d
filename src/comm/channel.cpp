#include "comm/channel.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/fault_points.h"

namespace mindpipe {
namespace {

constexpr std::size_t parts_ahead = 2;  // parts of one long message that are with MPI at a time

bool is_bulk(TrafficClass kind) { return kind > TrafficClass::pipeline; }

}  // namespace

Channels::Channels(MPI_Comm ranks, Waiting& waiting, TrafficLedger* ledger, const Route& route, int of_lane,
                   std::int64_t part_bytes)
    : waiting_(waiting), ledger_(ledger), route_(route), of_lane_(of_lane), part_bytes_(part_bytes) {
  MPI_CHECK(MPI_Comm_dup(ranks, comm_.receive()));
  MPI_CHECK(MPI_Comm_rank(comm_.get(), &rank_));
  world_ranks_ = world_ranks(comm_.get());
}

void Channels::use(Transports& transports, std::vector<ChannelName> channels,
                   const std::vector<ChannelName>& of_one_queue) {
  std::sort(channels.begin(), channels.end());  // one order for all ranks
  for (const ChannelName& channel : channels) {
    const bool mine = channel.from == rank_ || channel.to == rank_;
    MpiComm pair;  // the sender is rank 0 of it
    MPI_CHECK(
        MPI_Comm_split(comm_.get(), mine ? 0 : MPI_UNDEFINED, channel.from == rank_ ? 0 : 1, pair.receive()));
    if (!mine) continue;
    const auto place = [&](int rank) { return world_ranks_[static_cast<std::size_t>(rank)]; };
    const std::string name = fmt::format("channel {} from rank {} to rank {}", channel.payload,
                                         place(channel.from), place(channel.to));
    transports_.push_back(transports.among(pair.get(), Transports::Use::channel, name));
    queued_[channel] = {transports_.back().get()};
  }
  share(transports, of_one_queue);
}

void Channels::share(Transports& transports, const std::vector<ChannelName>& channels) {
  if (channels.empty()) return;
  std::vector<int> first(world_ranks_.size());  // of the ranks that channels join to this one
  std::iota(first.begin(), first.end(), 0);
  for (const ChannelName& channel : channels) {
    const int before = std::max(first[channel.from], first[channel.to]);
    std::replace(first.begin(), first.end(), before, std::min(first[channel.from], first[channel.to]));
  }
  std::vector<int> joined;
  for (int rank = 0; rank < static_cast<int>(first.size()); ++rank)
    if (first[rank] == first[rank_]) joined.push_back(rank);
  const bool is_one = joined.size() > 1;
  MpiComm ranks;
  MPI_CHECK(MPI_Comm_split(comm_.get(), is_one ? first[rank_] : MPI_UNDEFINED, rank_, ranks.receive()));
  if (!is_one) return;
  const auto place = [&](int rank) {
    return static_cast<int>(std::lower_bound(joined.begin(), joined.end(), rank) - joined.begin());
  };
  std::vector<int> peers;
  for (const ChannelName& channel : channels) {
    if (channel.from != rank_ && channel.to != rank_) continue;
    peers.push_back(place(channel.from == rank_ ? channel.to : channel.from));
    queued_[channel] = {nullptr, place(channel.from), place(channel.to)};
  }
  const std::string name = fmt::format("bulk messages between {} ranks from rank {} on", joined.size(),
                                       world_ranks_[static_cast<std::size_t>(joined.front())]);
  transports_.push_back(transports.among(ranks.get(), Transports::Use::bulk, name, peers));
  for (auto& [channel, queued] : queued_)
    if (queued.transport == nullptr) queued.transport = transports_.back().get();
}

Channels::Transfer Channels::put(const ChannelName& channel, const Tensor& tensor) {
  const auto found = queued_.find(channel);
  MP_CHECK(found != queued_.end(), "no channel of payload {} from rank {} to rank {} was asked for",
           channel.payload, channel.from, channel.to);
  using Way = Transport::Parcel::Way;
  const Queued& queued = found->second;
  const bool sends = channel.from == rank_;
  const Transport::Parcel parcel{sends ? Way::send : Way::receive, tensor.data, tensor.bytes(),
                                 sends ? queued.receiver : queued.sender};
  if (parcel.bytes > 0) queued.transport->put({&parcel, 1});
  return next_++;
}

Channels::Message& Channels::begin(Messages& messages, int peer, int payload, TrafficClass kind,
                                   const Tensor& tensor) {
  const std::int64_t part = alike_parts(static_cast<std::int64_t>(tensor.bytes()), part_bytes_);
  Message& message = messages.emplace_back(Message{next_, peer, payload, kind, tensor.as<std::byte>(),
                                                   tensor.bytes(), static_cast<std::size_t>(part)});
  message.moment = message.ended = moment();
  if (route_.ports == nullptr || !route_.ports->price()) return message;
  const PaperPorts::Priced price = *route_.ports->price();
  const auto turns = static_cast<std::size_t>(price.turns);
  message.price = price.takes;
  message.part = (message.bytes + turns - 1) / turns;
  return message;
}

Channels::Transfer Channels::send(int peer, int payload, const Tensor& tensor, TrafficClass kind) {
  MP_CHECK(payload >= 0 && peer != rank_, "a message of payload {} from rank {} to rank {}", payload, rank_,
           peer);
  if (is_message_left_out(rank_, peer, payload) || std::exchange(loses_next_, false)) return next_++;
  if (!queued_.empty()) {
    if (ledger_ != nullptr) ledger_->add(axis_to(peer), kind, static_cast<std::int64_t>(tensor.bytes()), 0);
    return put({rank_, peer, payload}, tensor);
  }
  begin(sends_, peer, payload, kind, tensor);
  if (route_.ports == nullptr) waiting_.gate().begin(kind);
  progress();
  return next_++;
}

Channels::Transfer Channels::receive(int peer, int payload, const Tensor& tensor) {
  MP_CHECK(payload >= 0 && peer != rank_, "a message of payload {} from rank {} to rank {}", payload, peer,
           rank_);
  if (is_message_left_out(peer, rank_, payload)) return next_++;
  if (!queued_.empty()) return put({peer, rank_, payload}, tensor);
  Message& message = begin(receives_, peer, payload, TrafficClass::pipeline, tensor);
  while (message.begun < message.bytes) begin_part(message, false);
  progress();
  return next_++;
}

void Channels::begin_part(Message& message, bool sending) {
  const std::size_t bytes = std::min(message.part, message.bytes - message.begun);
  const Wire::Way way = !sending                              ? Wire::Way::receive
                        : route_.kind == Route::Kind::counted ? Wire::Way::send_when_met
                                                              : Wire::Way::send;
  Route route = route_;
  if (route.ports != nullptr) {
    route.link = route.ports->link_to(message.peer);
    route.traffic = message.kind;
    route.moment = message.moment;
    route.price = message.price_of_part();
  }
  message.parts.emplace_back(route, way, message.data + message.begun, bytes, message.peer, message.payload,
                             comm_.get());
  message.begun += bytes;
}

void Channels::begin_sends(TrafficClass kind) {
  for (auto message = sends_.begin(); message != sends_.end(); ++message) {
    if (message->kind != kind) continue;
    const bool behind = std::any_of(sends_.begin(), message, [&](const Message& earlier) {
      return earlier.same_channel(*message) && earlier.begun < earlier.bytes;
    });
    // Ports of imitated ranks have all parts at once, in which the class decides between them and others.
    const auto may_begin = [&] { return route_.ports != nullptr || message->parts.size() < parts_ahead; };
    while (!behind && message->begun < message->bytes && may_begin()) {
      if (is_bulk(kind) && !waiting_.gate().open_for(kind)) return;
      begin_part(*message, true);
    }
  }
}

void Channels::finish_parts(Message& message, bool sending) {
  for (; !message.parts.empty() && message.parts.front().done(); message.parts.pop_front()) {
    const Wire& part = message.parts.front();
    MP_CHECK(
        sending || part.received() == part.bytes(),
        "payload {} from rank {} has {} bytes where {} were expected: the two ends of the channel differ",
        message.payload, message.peer, part.received(), part.bytes());
    message.arrived += part.bytes();
    message.ended = std::max(message.ended, part.ended());
  }
}

void Channels::finish(Messages& messages, bool sending) {
  for (auto message = messages.begin(); message != messages.end();) {
    // Messages of one channel end in order: one that is still on its way to MPI must not be overtaken there
    // by the next.
    const bool behind = std::any_of(messages.begin(), message,
                                    [&](const Message& earlier) { return earlier.same_channel(*message); });
    if (!behind) finish_parts(*message, sending);
    if (message->arrived < message->bytes) {
      ++message;
      continue;
    }
    if (route_.ports != nullptr) ended_[message->name] = message->ended;
    if (sending) {
      if (route_.ports == nullptr) waiting_.gate().end(message->kind);
      if (ledger_ != nullptr)
        ledger_->add(axis_to(message->peer), message->kind, static_cast<std::int64_t>(message->bytes),
                     seconds_since(message->start_ns));
    }
    message = messages.erase(message);
  }
}

void Channels::progress() {
  for (Messages* messages : {&receives_, &sends_})
    for (Message& message : *messages)
      for (Wire& part : message.parts) inquiry_.about(part);
  inquiry_.ask();
  finish(receives_, false);
  finish(sends_, true);
  for (TrafficClass kind : traffic_classes) begin_sends(kind);
}

std::string Channels::describe(Transfer transfer) const {
  for (const auto* list : {&sends_, &receives_})
    for (const Message& message : *list)
      if (message.name == transfer)
        return fmt::format("message number {}, {} of {} bytes {} rank {}", message.name, message.arrived,
                           message.bytes, list == &sends_ ? "taken by" : "arrived from",
                           world_ranks_[static_cast<std::size_t>(message.peer)]);
  return "a message that is done";
}

std::optional<std::int64_t> Channels::take_end(Transfer transfer) {
  const auto found = ended_.find(transfer);
  if (found == ended_.end()) return {};
  const std::int64_t end = found->second;
  ended_.erase(found);
  return end;
}

bool Channels::done(Transfer transfer) const {
  const auto is_it = [&](const Message& message) { return message.name == transfer; };
  return std::none_of(sends_.begin(), sends_.end(), is_it) &&
         std::none_of(receives_.begin(), receives_.end(), is_it);
}

void Channels::wait(Transfer transfer) {
  waiting_.until(
      [&] {
        progress();
        return done(transfer);
      },
      [&] { return describe(transfer); });
}

}  // namespace mindpipe
