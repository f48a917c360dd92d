#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "io/file.h"

namespace mindpipe {

/// Bytes of a file that one rank has written, and their CRC. None crosses the edge of a block
/// (Manifest::block).
struct WrittenPiece {
  std::int64_t offset = 0, bytes = 0;
  std::uint32_t crc = 0;
};

/// Writes pieces of a file that others write too, and keeps their CRCs. Whole pages of bytes that lie in
/// memory as in the file go straight to the device, and come back from it; the rest goes through the system's
/// cache. Nothing here throws: the first problem is kept, and what follows it does nothing.
class CheckedWriter {
 public:
  /// Opens the file, which is there.
  explicit CheckedWriter(std::string path);

  void write(std::int64_t offset, const void* bytes, std::int64_t count);
  /// Takes in bytes that somebody else has written or writes.
  void note(std::int64_t offset, const void* bytes, std::int64_t count);
  /// Takes in what the file holds there.
  void note_as_it_is(std::int64_t offset, std::int64_t count);
  /// Keeps a problem that another way of writing had; empty: it had none.
  void take_problem(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }
  /// Waits until the device has everything, then reads it all back and compares the CRCs.
  void finish();

  /// "PATH: writing failed: No space left on device"; empty: none.
  const std::string& problem() const { return problem_; }
  const std::vector<WrittenPiece>& pieces() const { return pieces_; }

 private:
  /// One call's share of a read or a write.
  struct Turn {
    std::int64_t bytes = 0;
    bool direct = false;
  };
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  Turn turn_of(std::int64_t offset, const std::byte* bytes, std::int64_t count) const;
  bool goes_on(const Turn& turn);
  int file_of(const Turn& turn) const { return turn.direct ? direct_.get() : file_.get(); }
  void fails(const char* what, int error);
  void read_back();
  template <class Use>
  bool read(std::int64_t offset, std::int64_t count, Use use);

  std::string path_, problem_;
  File file_, direct_;  ///< direct_: none where the file system has no direct input and output
  bool wrote_directly_ = false;
  std::unique_ptr<std::byte, Free> buffer_;  ///< begins with a page
  std::vector<WrittenPiece> pieces_;
};

/// Pieces as bytes for another rank.
std::vector<std::byte> bytes_of_pieces(const std::vector<WrittenPiece>& pieces);
/// The pieces of all ranks, from the bytes of each.
std::vector<WrittenPiece> pieces_of(const std::vector<std::vector<std::byte>>& ranks);

/// The CRCs of a file's blocks, from pieces in any order, which must cover each of its bytes once. `what`:
/// the file, for complaints.
std::vector<std::uint32_t> block_crcs(std::vector<WrittenPiece> pieces, std::int64_t file_bytes,
                                      const std::string& what = "a checkpoint");

}  // namespace mindpipe
