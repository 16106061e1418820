#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/growing.h"
#include "base/result.h"
#include "core/group/facts.h"
#include "core/kv/facts.h"
#include "core/queue/facts.h"
#include "core/stream/catalog.h"
#include "server/shard/shard_facts.h"

/// The facts of a round: one byte for the format, then frames (base/growing.h) of all machines, in
/// the order in which the facts happened. Format 1, which is no longer written, has no such byte:
/// each fact begins with a byte for its layer, 0 to 4, and has no length.
namespace baton {

inline constexpr std::uint8_t kRoundFormat2 = 0xf2;

/// Begins a round with its format, unless the round already has facts.
inline void begin_facts(std::string& facts) {
  if (facts.empty()) facts.push_back(static_cast<char>(kRoundFormat2));
}

/// Whether the facts of a round are of format 1.
inline bool is_format_1(std::string_view facts) {
  return !facts.empty() && static_cast<std::uint8_t>(facts.front()) != kRoundFormat2;
}

namespace round_facts {

template <class Fact, class Visit>
Status give(Result<Fact> fact, const Visit& visit) {
  if (!fact.has_value()) return std::move(fact).error();
  return visit(*fact);
}

template <class Visit>
Status visit_frame(const FactFrame& frame, const Visit& visit) {
  const auto known = [&](const FactSet& set, const auto& decode) -> Status {
    if (frame.kind >= set.kinds.size()) return skip_frame(frame, set.name);
    return give(decode(), visit);
  };
  switch (frame.owner.value) {
    case 0: return known(kShardFacts, [&] { return decode_shard_fact(frame); });
    case 1: return known(kQueueFacts, [&] { return decode_queue_fact(frame); });
    case 2: return known(kStreamFacts, [&] { return decode_stream_fact(frame); });
    case 3: return known(kCoordinatorFacts, [&] { return decode_coordinator_fact(frame); });
    case 4: return known(kKvFacts, [&] { return decode_kv_fact(frame); });
    default: return skip_frame(frame, fmt::format("machine {}", frame.owner.value));
  }
}

template <class Visit>
Status visit_fact_1(Decoder& in, const Visit& visit) {
  switch (in.u8()) {
    case 0: return give(decode_shard_fact_1(in), visit);
    case 1: return give(decode_queue_fact_1(in), visit);
    case 2: return give(decode_stream_fact_1(in), visit);
    case 3: return give(decode_coordinator_fact_1(in), visit);
    case 4: return give(decode_kv_fact_1(in), visit);
    default: return Error{Errc::store_too_new, "facts this version does not know"};
  }
}

}  // namespace round_facts

/// Decodes the facts of a round, of either format, and calls `visit` with each: a ShardFact,
/// QueueFact, StreamFact, CoordinatorFact or KvFact. `visit` may move from the fact, and returns a
/// Status. Stops at the first error. A fact of an unknown kind is skipped if its writer allows
/// that; otherwise the error is store_too_new and names the kind.
template <class Visit>
Status visit_facts(std::string_view facts, const Visit& visit) {
  Decoder in(facts);
  if (is_format_1(facts)) {
    while (!in.empty()) BATON_TRY_STATUS(round_facts::visit_fact_1(in, visit));
    return {};
  }
  if (!in.empty()) in.u8();
  while (!in.empty()) {
    const FactFrame frame = read_frame(in);
    if (!in.ok()) return Error{Errc::malformed, "a fact is longer than its round"};
    BATON_TRY_STATUS(round_facts::visit_frame(frame, visit));
  }
  return {};
}

}  // namespace baton
