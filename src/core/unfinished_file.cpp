#include "core/unfinished_file.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace mindpipe {

/// A file's entry in the list of all. An entry is never freed but used again, and its path changes only
/// while nobody else looks at it: so the list can be walked at any moment.
struct UnfinishedFile::Entry {
  enum State : int { free, taken, listed };
  std::atomic<State> state = taken;
  std::string path;
  Entry* next = nullptr;

  static std::atomic<Entry*> first;
  static Entry* take();
};

std::atomic<UnfinishedFile::Entry*> UnfinishedFile::Entry::first = nullptr;

UnfinishedFile::Entry* UnfinishedFile::Entry::take() {
  for (Entry* entry = first; entry != nullptr; entry = entry->next)
    if (State unused = free; entry->state.compare_exchange_strong(unused, taken)) return entry;
  auto* entry = new Entry;
  entry->next = first;
  while (!first.compare_exchange_weak(entry->next, entry)) {
  }
  return entry;
}

UnfinishedFile::UnfinishedFile(const std::string& path) : entry_(Entry::take()) {
  entry_->path = path;
  entry_->state = Entry::listed;
}

UnfinishedFile::~UnfinishedFile() {
  if (entry_->state.exchange(Entry::taken) == Entry::listed) ::unlink(entry_->path.c_str());
  entry_->state = Entry::free;
}

const std::string& UnfinishedFile::path() const { return entry_->path; }

bool UnfinishedFile::becomes(const std::string& path) {
  if (std::rename(entry_->path.c_str(), path.c_str()) != 0) return false;
  entry_->state = Entry::taken;
  return true;
}

void remove_unfinished_files() noexcept {
  for (UnfinishedFile::Entry* entry = UnfinishedFile::Entry::first; entry != nullptr; entry = entry->next)
    if (entry->state == UnfinishedFile::Entry::listed) ::unlink(entry->path.c_str());
}

}  // namespace mindpipe
