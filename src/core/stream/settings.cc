#include "core/stream/settings.h"

#include <chrono>

#include <fmt/format.h>

#include "base/names.h"

namespace baton {
namespace {

constexpr std::uint8_t kVersion = 1;

Status check_number(std::string_view field, std::uint64_t value, std::uint64_t min,
                    std::uint64_t max) {
  if (value >= min && value <= max) return {};
  return Error{Errc::invalid_argument,
               fmt::format("{} is {}; it may be {} to {}", field, value, min, max)};
}

}  // namespace

RetentionRules StreamSettings::retention_rules() const {
  RetentionRules rules;
  if (retention.count() != 0) rules.age = retention;
  if (retention_bytes != 0) rules.bytes = retention_bytes;
  return rules;
}

Status validate(const StreamSettings& settings) {
  if (settings.retention.count() < 0 || settings.retention > limits::kRetentionMax) {
    return Error{
        Errc::invalid_argument,
        fmt::format("retention is {}; it may be 0 (for ever) to {}",
                    format_duration(settings.retention), format_duration(limits::kRetentionMax))};
  }
  BATON_TRY_STATUS(check_number("segment_bytes", settings.segment_bytes, limits::kSegmentBytesMin,
                                limits::kSegmentBytesMax));
  return check_number("batch_bytes_max", settings.batch_bytes_max, limits::kKiB,
                      limits::kStreamBatchBytesMax);
}

Status validate_stream_name(std::string_view name) {
  return validate_name("stream name", name, limits::kStreamNameBytesMax);
}

StreamSettings patched(StreamSettings settings, const StreamSettingsPatch& patch) {
  const auto lay = [](auto& value, const auto& over) {
    if (over.has_value()) value = *over;
  };
  lay(settings.retention, patch.retention);
  lay(settings.retention_bytes, patch.retention_bytes);
  lay(settings.segment_bytes, patch.segment_bytes);
  lay(settings.fsync, patch.fsync);
  lay(settings.batch_bytes_max, patch.batch_bytes_max);
  return settings;
}

void encode(Encoder& out, const StreamSettings& settings) {
  out.u8(kVersion);
  out.fixed(settings.retention.count());
  out.varint(settings.retention_bytes);
  out.varint(settings.segment_bytes);
  out.u8(static_cast<std::uint8_t>(settings.fsync.kind));
  out.fixed(settings.fsync.interval.count());
  out.varint(settings.batch_bytes_max);
}

StreamSettings decode_stream_settings(Decoder& in) {
  StreamSettings settings;
  const std::uint8_t version = in.u8();
  settings.retention = Duration{in.fixed<std::int64_t>()};
  settings.retention_bytes = in.varint();
  settings.segment_bytes = in.varint();
  const std::uint8_t kind = in.u8();
  settings.fsync.interval = Duration{in.fixed<std::int64_t>()};
  settings.batch_bytes_max = in.varint();
  if (version != kVersion || kind > static_cast<std::uint8_t>(FsyncMode::Kind::never)) {
    in.fail();
    return settings;
  }
  settings.fsync.kind = static_cast<FsyncMode::Kind>(kind);
  if (in.ok() && !validate(settings).has_value()) in.fail();
  return settings;
}

}  // namespace baton
