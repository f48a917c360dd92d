#include "comm/made_nccl/links.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace made_nccl {

void SharedRoom::make(const std::string& name) {
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0) throw std::runtime_error("nccl, standing in: no shared memory named " + name);
  close(file);
}

void SharedRoom::forget(const std::string& name) { shm_unlink(name.c_str()); }

SharedRoom::SharedRoom(const std::string& name, int ranks) : bytes_(Room::bytes(ranks)) {
  const int file = shm_open(name.c_str(), O_RDWR, 0600);
  if (file < 0) throw std::runtime_error("nobody has made the id '" + name + "', or it was used before");
  void* mapped = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes_)) == 0)
    mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped == MAP_FAILED) throw std::runtime_error("nccl, standing in: shared memory is not to be had");
  room_ = static_cast<Room*>(mapped);
}

SharedRoom::~SharedRoom() { munmap(room_, bytes_); }

Operation::Operation(Device& device, std::shared_ptr<Link> link, std::vector<Message> messages)
    : device_(device),
      link_(std::move(link)),
      place_(device.put_in++),
      delay_(static_cast<int>(place_ * 0x9E3779B97F4A7C15u >> 62)) {
  for (const Message& message : messages) ways_.push_back({message});
  ++link_->waiting;
}

bool Operation::turn() {
  if (link_->state != 0) return false;  // what a broken communicator has not moved stays where it is
  if (stage_ == Stage::queued && device_.started == place_ && !link_->busy) post();
  if (stage_ == Stage::meeting && all_have_met()) start();
  if (stage_ != Stage::started || delay_-- > 0 || !move()) {
    patience_.look(link_->name);
    return false;
  }
  link_->busy = false;
  --link_->waiting;
  return true;
}

/// Writes down what this rank means to send and to receive.
void Operation::post() {
  link_->busy = true;
  for (Way& way : ways_) {
    Lane::End& end = way.message.sends ? lane(way.message).sender : lane(way.message).receiver;
    way.number = end.put;
    end.sizes[way.number % Lane::most_in_group] = way.message.bytes;
    end.types[way.number % Lane::most_in_group] = way.message.type;
    ++end.put;
  }
  stage_ = Stage::meeting;
}

bool Operation::all_have_met() {
  return std::all_of(ways_.begin(), ways_.end(), [&](const Way& way) {
    return (way.message.sends ? lane(way.message).receiver : lane(way.message).sender).put > way.number;
  });
}

void Operation::start() {
  for (const Way& way : ways_) {
    const Lane::End& other = way.message.sends ? lane(way.message).receiver : lane(way.message).sender;
    const std::uint64_t at = way.number % Lane::most_in_group;
    if (other.sizes[at] != way.message.bytes || other.types[at] != way.message.type)
      throw std::runtime_error("nccl, standing in: message " + std::to_string(way.number) + " of " +
                               link_->name + " has " + std::to_string(way.message.bytes) +
                               " bytes on one rank and " + std::to_string(other.sizes[at]) +
                               " on the other, or another type");
    // From its start until its end nobody may rely on what stands where a message arrives.
    if (!way.message.sends) std::memset(way.message.data, 0xff, way.message.bytes);
  }
  ++device_.started;
  stage_ = Stage::started;
}

/// Moves what can be moved; those of one peer and direction one after the other.
bool Operation::move() {
  bool all = true;
  for (Way& way : ways_) way.is_over = way.is_over || move(way);
  for (const Way& way : ways_) all = all && way.is_over;
  return all;
}

bool Operation::move(Way& way) const {
  const Message& m = way.message;
  for (const Way& before : ways_) {
    if (&before == &way) break;
    if (before.message.sends == m.sends && before.message.peer == m.peer && !before.is_over) return false;
  }
  Lane& through = lane(m);
  while (way.moved < m.bytes) {
    if ((through.filled > through.emptied) == m.sends) return false;
    const std::size_t here = std::min<std::size_t>(Lane::chunk_bytes, m.bytes - way.moved);
    std::byte* at = m.data + way.moved;
    std::memcpy(m.sends ? through.chunk : at, m.sends ? at : through.chunk, here);
    ++(m.sends ? through.filled : through.emptied);
    way.moved += here;
  }
  return !m.sends || through.filled == through.emptied;  // a send is over when what it sent has been received
}

}  // namespace made_nccl
