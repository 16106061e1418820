#include "pipeline/engine/sink.h"

#include "base/assert.h"

namespace baton::pipeline {

std::expected<SinkMarks, flow::SinkError> Sink::claim(std::uint32_t /*partition*/,
                                                      std::int64_t /*next*/) {
  BATON_ASSERT(is_transactional());
  return SinkMarks{};
}

std::optional<flow::SinkError> Sink::settle(std::uint32_t /*partition*/, std::uint64_t /*epoch*/,
                                            std::int64_t /*next*/) {
  return std::nullopt;
}

}  // namespace baton::pipeline
