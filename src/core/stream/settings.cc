#include "core/stream/settings.h"

#include <chrono>

#include <fmt/format.h>

#include "base/growing.h"
#include "base/names.h"

namespace baton {
namespace {

constexpr std::uint8_t kVersion1 = 1;

// The numbers of the fields.
constexpr std::uint64_t kRetention = 1;
constexpr std::uint64_t kRetentionBytes = 2;
constexpr std::uint64_t kSegmentBytes = 3;
constexpr std::uint64_t kFsync = 4;
constexpr std::uint64_t kBatchBytesMax = 5;

std::uint64_t stored(Duration span) { return static_cast<std::uint64_t>(span.count()); }
Duration read_span(Decoder& in) { return Duration{static_cast<std::int64_t>(in.varint())}; }

void put_fsync(Encoder& out, const FsyncMode& fsync) {
  std::string bytes;
  Encoder inner(bytes);
  inner.u8(static_cast<std::uint8_t>(fsync.kind));
  inner.varint(stored(fsync.interval));
  put_field(out, kFsync, bytes);
}

FsyncMode::Kind read_fsync_kind(Decoder& in) {
  const std::uint8_t kind = in.u8();
  if (kind > static_cast<std::uint8_t>(FsyncMode::Kind::never)) in.fail();
  return in.ok() ? static_cast<FsyncMode::Kind>(kind) : FsyncMode::Kind{};
}

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
  const StreamSettings initial;
  const auto put = [&](std::uint64_t number, std::uint64_t value, std::uint64_t absent) {
    if (value != absent) put_field(out, number, value);
  };
  out.blob_of(0, [&] {
    put(kRetention, stored(settings.retention), stored(initial.retention));
    put(kRetentionBytes, settings.retention_bytes, initial.retention_bytes);
    put(kSegmentBytes, settings.segment_bytes, initial.segment_bytes);
    if (settings.fsync != initial.fsync) put_fsync(out, settings.fsync);
    put(kBatchBytesMax, settings.batch_bytes_max, initial.batch_bytes_max);
  });
}

StreamSettings decode_stream_settings(Decoder& in) {
  StreamSettings settings;
  Decoder bytes(in.blob());
  for (FieldReader field(bytes); field.next();) {
    Decoder& value = field.value();
    switch (field.number()) {
      case kRetention: settings.retention = read_span(value); break;
      case kRetentionBytes: settings.retention_bytes = value.varint(); break;
      case kSegmentBytes: settings.segment_bytes = value.varint(); break;
      case kFsync:
        settings.fsync.kind = read_fsync_kind(value);
        settings.fsync.interval = read_span(value);
        break;
      case kBatchBytesMax: settings.batch_bytes_max = value.varint(); break;
      default: field.skip();
    }
  }
  if (!bytes.ok()) in.fail_as(bytes, "settings");
  if (in.ok() && !validate(settings).has_value()) in.fail();
  return settings;
}

StreamSettings decode_stream_settings_1(Decoder& in) {
  StreamSettings settings;
  if (in.u8() != kVersion1) in.fail();
  settings.retention = Duration{in.fixed<std::int64_t>()};
  settings.retention_bytes = in.varint();
  settings.segment_bytes = in.varint();
  settings.fsync.kind = read_fsync_kind(in);
  settings.fsync.interval = Duration{in.fixed<std::int64_t>()};
  settings.batch_bytes_max = in.varint();
  if (in.ok() && !validate(settings).has_value()) in.fail();
  return settings;
}

}  // namespace baton
