#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace baton::pipeline {

/// Which offsets of a partition are done: all below next(), and ranges behind it. Pure.
///
/// A group commits next(), with the ranges as a note beside it:
///
///   "redriven1 5 3.20 1": from next() on 5 are open and 1 is done; 3 are open, 20 done; 1 is open,
///   1 done
class RedrivenOffsets {
 public:
  explicit RedrivenOffsets(std::int64_t next = 0) : next_(next) {}
  /// Reads a commit. A note in another form is ignored.
  static RedrivenOffsets of(std::int64_t next, std::string_view note);

  [[nodiscard]] bool contains(std::int64_t offset) const;
  /// Adds the offsets from `begin` up to, not including, `end`.
  void add(std::int64_t begin, std::int64_t end);

  bool operator==(const RedrivenOffsets&) const = default;
  [[nodiscard]] std::int64_t next() const { return next_; }
  [[nodiscard]] std::string note() const;
  /// Whether the note stays within what brokers accept (4096 bytes by default) if this is added.
  /// There is always room at next().
  [[nodiscard]] bool has_room_for(std::int64_t begin, std::int64_t end) const;

 private:
  std::int64_t next_;
  // Begin and end; no two touch each other, and none touches next_.
  std::map<std::int64_t, std::int64_t> ranges_;
};

}  // namespace baton::pipeline
