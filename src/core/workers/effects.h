#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/strong.h"
#include "base/time.h"
#include "core/workers/view.h"

namespace baton::partition {

using RequestId = std::uint64_t;

// What the machine wants of the store. Every request is answered exactly once, by on_reply(): in
// the end with `failed`.

struct Request {
  enum class Kind : std::uint8_t { get, cas, remove, list };
  RequestId id = 0;
  Kind kind = Kind::get;
  std::string key;  // list: the prefix.
  Revision expected = 0;
  std::string value;
};

struct Reply {
  enum class Verdict : std::uint8_t {
    done,
    refused,  // The key is not at the expected revision.
    failed,   // Nobody knows whether it happened.
  };
  Verdict verdict = Verdict::failed;
  Revision revision = 0;       // Of a cas that is done.
  std::vector<Entry> entries;  // Of get (none: there is no such key) and list.
  std::string error;           // Of a failure.
};

struct OpenWatch {
  std::uint64_t watch = 0;  // Shown again by each of its events.
  std::string prefix;
  std::string session;  // The key whose holder is behind it.
};
struct CloseWatch {
  std::uint64_t watch = 0;
};

struct WatchEvent {
  enum class Kind : std::uint8_t { put, removed, snapshot_end, session_lost, broken };
  std::uint64_t watch = 0;
  Kind kind = Kind::put;
  Entry entry;  // `broken`: the value says why.
};

// What the machine wants of the one who does the work.

/// Work on it may begin, under this epoch.
struct Acquired {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
};
/// Finish what is under way, take nothing new, and say stopped() by the deadline.
struct Revoking {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
  Instant deadline;
};
/// Stop at once, and say stopped(): it belongs to somebody else, or soon may.
struct Lost {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
  std::string why;
};
/// All that is held may be worked on until then.
struct Renewed {
  Instant deadline;
};
/// The last one. Nothing is held any more.
struct Finished {
  Status status;
};
/// For the log.
struct Note {
  bool warning = false;
  std::string text;
};

using Effect =
    std::variant<Request, OpenWatch, CloseWatch, Acquired, Revoking, Lost, Renewed, Finished, Note>;

}  // namespace baton::partition
