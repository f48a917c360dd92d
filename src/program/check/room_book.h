#pragma once
#include <vector>

#include "program/check/pass_book.h"

namespace mindpipe {

/// Follows what lies in boundary buffers and in the arenas of tapes: a pass finds what it reads, and nothing
/// is written where something is yet to be read, or may still be. What arrives lies in a buffer, or in the
/// arena of its micro-batch where subnets overtake each other.
class RoomBook {
 public:
  explicit RoomBook(Reading& reading) : reading_(reading) {}
  /// `blocks`: those of the action's chunk, for a pass.
  void see(const PassBook::Blocks* blocks);
  /// Here no arena may hold a tape.
  void end();

 private:
  /// What crosses a cut for a micro-batch one way, or (no way) a micro-batch's tape of a chunk.
  struct Content {
    enum Way : std::uint8_t { forwards, backwards, nowhere };
    std::int64_t subnet = 0;
    int micro_batch = -1, place = -1;  ///< the cut, or the chunk
    Way way = nowhere;
    bool operator==(const Content&) const = default;
  };
  struct Buffer {
    Content now;
    std::vector<ListEntry> writers, readers;
    std::vector<ListEntry> before;  ///< the last users of what lay there before
    int due = 0;                    ///< how many are to read what lies there, at least
  };
  struct Arena {
    Content now;
    bool is_open = false;
    ListEntry forward;
    ListEntry before;  ///< the last pass on the tape that was there before
  };

  Content crossing(int cut, bool with_forward) const;
  bool arrives_in_arenas() const { return reading_.of == ListOf::subnets; }
  void pass(const PassBook::Blocks& blocks);
  void message();
  void copy();
  Buffer* buffer(int number, bool with_forward, const char* purpose);
  void write(int number, const Content& content, int due);
  void read(int number, const Content& content);
  bool arrives(int cut) const;
  Arena* arena();
  void take(Arena& arena, const char* what);
  void arrive(Arena& arena);
  void pass_in(Arena& arena, const PassBook::Blocks& blocks);
  void wait_in(const PassBook::Blocks& blocks);

  Reading& reading_;
  std::vector<Buffer> buffers_;
  std::vector<Arena> arenas_;
  std::vector<Content> waiting_;  ///< tapes whose products read the arenas of what is put off; none: free
};

}  // namespace mindpipe
