#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace baton::pipeline {

/// Which offsets of a partition are done with: all below next(), and ranges behind it. Pure.
///
/// A group commits the one number, with the ranges as a note beside it:
///
///   "redriven1 5 3.20 1": from next() on 5 are open and 1 is done; 3 are open, 20 done; 1 is open,
///   1 done
class RedrivenOffsets {
 public:
  explicit RedrivenOffsets(std::int64_t next = 0) : next_(next) {}
  /// As committed. A note of somebody else says nothing.
  static RedrivenOffsets of(std::int64_t next, std::string_view note);

  [[nodiscard]] bool contains(std::int64_t offset) const;
  /// From `begin` up to, not including, `end`.
  void add(std::int64_t begin, std::int64_t end);

  bool operator==(const RedrivenOffsets&) const = default;
  [[nodiscard]] std::int64_t next() const { return next_; }
  [[nodiscard]] std::string note() const;
  /// Whether the note is one that brokers take (4096 bytes, unless they are told otherwise) when
  /// this is added. At next() there is always room.
  [[nodiscard]] bool has_room_for(std::int64_t begin, std::int64_t end) const;

 private:
  std::int64_t next_;
  std::map<std::int64_t, std::int64_t> ranges_;  // Begin and end; none touches another, or next_.
};

}  // namespace baton::pipeline
