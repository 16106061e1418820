#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/kv/types.h"

namespace baton {

/// One watch, and the sink that its changes go to. Chosen by the owner; never given twice.
using KvWatchId = Strong<struct KvWatchIdTag>;

/// The watch that named this key as its session broke. A hint, no change: the key is as it was.
struct KvSessionLost {
  std::string key;
  Revision revision;  // Of the key when the watch broke: what an evictor compares with.
};

enum class KvWatchEnd : std::uint8_t {
  /// Changes it has not been sent are no longer known. List the bucket, then watch after the
  /// revision of the list's first page.
  fell_behind,
  bucket_deleted,
};

/// What one watch is to be told, in the order of the members; to be sent only when all facts
/// recorded before it are durable.
struct KvWatchEffect {
  KvWatchId watch;
  std::vector<KvChange> changes;
  std::vector<KvSessionLost> sessions_lost;
  /// Every change up to here that the watch asked for has been sent: where it may resume. At the
  /// end of a watch that fell behind: the bucket's revision.
  Revision complete_to;
  std::optional<KvWatchEnd> end;  // Nothing follows.
};

}  // namespace baton
