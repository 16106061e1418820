#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/workers/view.h"

namespace baton::partition {

using RequestId = std::uint64_t;

// What the machine asks of the store. Every request is answered exactly once, by on_reply(), if
// need be with `failed`.

struct Request {
  enum class Kind : std::uint8_t { get, cas, remove, list };
  RequestId id = 0;
  Kind kind = Kind::get;
  std::string key;  // For list: the prefix.
  Revision expected = 0;
  std::string value;
};

struct Reply {
  enum class Verdict : std::uint8_t {
    done,
    refused,  // The key is not at the expected revision.
    failed,   // It is unknown whether the request took effect.
  };
  Verdict verdict = Verdict::failed;
  Revision revision = 0;       // Of a successful cas.
  std::vector<Entry> entries;  // Of list and get (empty: no such key).
  std::string error;           // Of a failure.
};

struct OpenWatch {
  std::uint64_t watch = 0;  // Repeated in each of its events.
  std::string prefix;
  std::string session;  // The key that stands for the watch's owner.
};
struct CloseWatch {
  std::uint64_t watch = 0;
};

struct WatchEvent {
  enum class Kind : std::uint8_t { put, removed, snapshot_end, session_lost, broken };
  std::uint64_t watch = 0;
  Kind kind = Kind::put;
  Entry entry;  // For `broken`, the value says why.
};

// What the machine asks of the program that does the work.

/// Work on the partition may begin, under this epoch.
struct Acquired {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
};
/// Finish the work in progress, take nothing new, and call stopped() by the deadline.
struct Revoking {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
  Instant deadline;
};
/// Stop at once, and call stopped(): the partition belongs to another worker, or soon may.
struct Lost {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
  std::string why;
};
/// Everything held may be worked on until then.
struct Renewed {
  Instant deadline;
};
/// The last effect. Nothing is held any more.
struct Finished {
  Status status;
};
/// A line for the log.
struct Note {
  bool warning = false;
  std::string text;
};

using Effect =
    std::variant<Request, OpenWatch, CloseWatch, Acquired, Revoking, Lost, Renewed, Finished, Note>;

}  // namespace baton::partition
