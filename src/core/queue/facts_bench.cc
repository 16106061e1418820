// Measures encoding and decoding of the facts that every message causes.

#include <cstddef>
#include <string>

#include <benchmark/benchmark.h>

#include "core/queue/facts.h"

namespace baton {
namespace {

constexpr LeaseToken kToken{.boot = 12, .number = 3'000'000};
constexpr Instant kDeadline{1'700'000'000'000'000'003};

Uuid id() { return Uuid::from_raw("0123456789abcdef"); }

QueueFact enqueued(std::size_t payload_bytes) {
  NewMessage sent;
  sent.payload.assign(payload_bytes, 'p');
  sent.fairness_key = "tenant-17";
  return Enqueued{.queue = QueueId{21},
                  .sequence = Sequence{3'000'000},
                  .due = {},
                  .dedup = {},
                  .message = Message::make(sent, id(), kDeadline, Instant::never())};
}

QueueFact leased(std::size_t count) {
  Leased fact{.queue = QueueId{21},
              .consumer_id = "consumer-1",
              .deadline = kDeadline,
              .first = kToken,
              .items = {}};
  for (std::size_t i = 0; i < count; ++i) {
    fact.items.push_back({Sequence{3'000'000 + i}, id(), 1'100, "tenant-17"});
  }
  return fact;
}

/// Writes a round of equal facts into a buffer of sufficient capacity, as a shard does.
void encode_round(std::string& out, const QueueFact& fact) {
  out.clear();
  Encoder encoder(out);
  for (int i = 0; i < 256; ++i) encode(encoder, fact);
}

void write(benchmark::State& state, const QueueFact& fact) {
  std::string bytes;
  for (auto _ : state) {
    encode_round(bytes, fact);
    benchmark::DoNotOptimize(bytes.data());
  }
  state.SetItemsProcessed(state.iterations() * 256);
  state.counters["bytes"] = static_cast<double>(bytes.size()) / 256;
}

void read(benchmark::State& state, const QueueFact& fact) {
  std::string bytes;
  encode_round(bytes, fact);
  for (auto _ : state) {
    Decoder in(bytes);
    while (!in.empty()) {
      const Result<QueueFact> decoded = decode_queue_fact(in);
      if (!decoded.has_value()) state.SkipWithError("a fact cannot be read");
      benchmark::DoNotOptimize(decoded->index());
    }
  }
  state.SetItemsProcessed(state.iterations() * 256);
}

BENCHMARK_CAPTURE(write, enqueued_100, enqueued(100));
BENCHMARK_CAPTURE(write, enqueued_1k, enqueued(1'024));
BENCHMARK_CAPTURE(write, enqueued_64k, enqueued(65'536));
BENCHMARK_CAPTURE(write, leased_1, leased(1));
BENCHMARK_CAPTURE(write, leased_16, leased(16));
BENCHMARK_CAPTURE(write, acked, QueueFact(Acked{kToken}));
BENCHMARK_CAPTURE(read, enqueued_100, enqueued(100));
BENCHMARK_CAPTURE(read, enqueued_1k, enqueued(1'024));
BENCHMARK_CAPTURE(read, leased_1, leased(1));
BENCHMARK_CAPTURE(read, leased_16, leased(16));
BENCHMARK_CAPTURE(read, acked, QueueFact(Acked{kToken}));

}  // namespace
}  // namespace baton
