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

/// What an operator sets on a stream. Live: a change counts from the next append on. The values
/// here are part of the format: a setting that has its own is not written, so they must not change.
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

/// A blob of the settings that differ from StreamSettings{}, as numbered fields (base/growing.h).
void encode(Encoder& out, const StreamSettings& settings);
/// Settings out of their limits fail the decoder, and so does one to come that must be understood.
StreamSettings decode_stream_settings(Decoder& in);
/// The same from format 1: a version and every setting in a fixed order. No longer written.
StreamSettings decode_stream_settings_1(Decoder& in);

}  // namespace baton
