#pragma once

#include <string>
#include <vector>

#include "core/stream/records.h"

namespace baton::client {

/// A batch with records of these values, as the broker would have stored it.
inline std::string batch_of(const std::vector<std::string>& values, std::int64_t base_offset,
                            Compression compression = Compression::none) {
  BatchBuilder builder;
  for (const std::string& value : values) {
    const auto added = builder.add(
        {.key = std::nullopt, .value = value, .headers = {}, .timestamp = TimestampMs{1'000}});
    if (!added) return {};
  }
  std::string bytes = *builder.finish(compression);
  set_base_offset(bytes, Offset{base_offset}, LeaderEpoch{0});
  return bytes;
}

/// The values of the records of one batch.
inline std::vector<std::string> values_of(std::string_view bytes) {
  std::vector<std::string> values;
  const auto batch = BatchView::parse(bytes);
  if (!batch) return values;
  auto reader = RecordReader::open(*batch);
  RecordView record;
  while (reader && reader->next(record).value_or(false)) {
    values.emplace_back(record.value.value_or(""));
  }
  return values;
}

}  // namespace baton::client
