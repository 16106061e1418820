#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/fsync_mode.h"
#include "base/result.h"
#include "base/time.h"
#include "core/stream/limits.h"
#include "core/stream/retention.h"

namespace baton {

/// What an operator sets on a stream. Live: a change counts from the next append on.
struct StreamSettings {
  Duration retention{0};              // 0 = for ever.
  std::uint64_t retention_bytes = 0;  // Per partition; 0 = no limit.
  std::uint64_t segment_bytes = limits::kSegmentBytesDefault;
  FsyncMode fsync;
  std::uint64_t batch_bytes_max = limits::kStreamBatchBytesDefault;

  bool operator==(const StreamSettings&) const = default;
  [[nodiscard]] RetentionRules retention_rules() const;
};

/// Names the first setting that is out of its limits.
Status validate(const StreamSettings& settings);
Status validate_stream_name(std::string_view name);

/// Some settings, to be laid over others: what an update request carries.
struct StreamSettingsPatch {
  std::optional<Duration> retention;
  std::optional<std::uint64_t> retention_bytes;
  std::optional<std::uint64_t> segment_bytes;
  std::optional<FsyncMode> fsync;
  std::optional<std::uint64_t> batch_bytes_max;
};
StreamSettings patched(StreamSettings settings, const StreamSettingsPatch& patch);

void encode(Encoder& out, const StreamSettings& settings);
/// Settings out of their limits fail the decoder.
StreamSettings decode_stream_settings(Decoder& in);

}  // namespace baton
