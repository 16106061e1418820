#include "server/http/metrics.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "server/http/families.h"
#include "server/http/group_metrics.h"
#include "server/http/process_metrics.h"
#include "server/http/queue_metrics.h"

namespace baton {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

/// One number of ShardStats, and the name of its metric.
struct ShardMetric {
  const char* name;
  const char* help;
  MetricType type;
  std::uint64_t ShardStats::* value;
  double unit = 1;  // The value of 1 in the unit of the name.
};

constexpr MetricType kCounter = MetricType::Counter;
constexpr MetricType kGauge = MetricType::Gauge;

constexpr std::array<ShardMetric, 21> kShardMetrics = {{
    {"baton_rounds_total", "Rounds decided.", kCounter, &ShardStats::rounds},
    {"baton_journal_written_bytes_total", "Bytes written to the journal.", kCounter,
     &ShardStats::journal_bytes},
    {"baton_journal_behind_bytes", "Journal that a recovery would read now.", kGauge,
     &ShardStats::journal_bytes_behind},
    {"baton_journal_syncs_total", "Fsyncs of the journal.", kCounter, &ShardStats::syncs},
    {"baton_journal_sync_seconds_total", "Time spent in fsyncs of the journal.", kCounter,
     &ShardStats::sync_ns, 1e-9},
    {"baton_checkpoints_total", "Checkpoints made.", kCounter, &ShardStats::checkpoints},
    {"baton_checkpoint_failures_total", "Checkpoints that failed.", kCounter,
     &ShardStats::checkpoint_failures},
    {"baton_messages_spilled_total", "Messages written to the store ahead of a checkpoint.",
     kCounter, &ShardStats::spilled_messages},
    {"baton_refills_total", "Reads of spilled messages back into memory.", kCounter,
     &ShardStats::refills},
    {"baton_commands_waiting", "Commands that wait for the shard.", kGauge,
     &ShardStats::commands_waiting},
    {"baton_payload_memory_bytes", "Payloads in memory.", kGauge, &ShardStats::payload_bytes},
    {"baton_messages_enqueued_total", "Messages taken.", kCounter, &ShardStats::enqueued},
    {"baton_messages_delivered_total", "Leases given to consumers.", kCounter,
     &ShardStats::delivered},
    {"baton_messages_acked_total", "Messages acknowledged.", kCounter, &ShardStats::acked},
    {"baton_messages_nacked_total", "Messages given back.", kCounter, &ShardStats::nacked},
    {"baton_leases_expired_total", "Leases that expired.", kCounter, &ShardStats::lease_expired},
    {"baton_messages_dead_lettered_total", "Messages whose attempts were used up.", kCounter,
     &ShardStats::dead_lettered},
    {"baton_messages_dropped_total", "Messages dropped by retention or expires_after.", kCounter,
     &ShardStats::dropped},
    {"baton_messages_deduplicated_total", "Messages not stored because their dedup_id was known.",
     kCounter, &ShardStats::deduplicated},
    {"baton_leases_lost_total", "Items refused because their lease had ended.", kCounter,
     &ShardStats::lease_lost},
    {"baton_boot_number", "How often the broker has started on this folder.", kGauge,
     &ShardStats::boot},
}};

constexpr std::array<const char*, Counters::kCodes> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

/// One number of StreamStats or of its groups, and the name of its metric.
struct StreamMetric {
  const char* name;
  const char* help;
  MetricType type;
  std::uint64_t (*value)(const StreamStats&);
};

constexpr std::array<StreamMetric, 12> kStreamMetrics = {{
    {"baton_streams", "Streams.", kGauge, [](const StreamStats& all) { return all.streams; }},
    {"baton_stream_batches_total", "Batches taken.", kCounter,
     [](const StreamStats& all) { return all.batches; }},
    {"baton_stream_appended_bytes_total", "Bytes of batches taken.", kCounter,
     [](const StreamStats& all) { return all.bytes; }},
    {"baton_stream_duplicates_total", "Batches that were already stored.", kCounter,
     [](const StreamStats& all) { return all.duplicates; }},
    {"baton_stream_refused_total", "Batches refused.", kCounter,
     [](const StreamStats& all) { return all.refused; }},
    {"baton_partitions_read_only", "Partitions found damaged.", kGauge,
     [](const StreamStats& all) { return all.partitions_read_only; }},
    {"baton_stream_damages_total", "Damaged places in records that readers found.", kCounter,
     [](const StreamStats& all) { return all.damages; }},
    {"baton_groups", "Groups, one for each partition.", kGauge,
     [](const StreamStats& all) { return all.groups.groups; }},
    {"baton_groups_without_active", "Groups with consumers and no active one: must be 0.", kGauge,
     [](const StreamStats& all) { return all.groups.groups_without_active; }},
    {"baton_group_activations_total", "Seats given.", kCounter,
     [](const StreamStats& all) { return all.groups.activations_total; }},
    {"baton_group_step_downs_total", "Seats taken back.", kCounter,
     [](const StreamStats& all) { return all.groups.step_downs_total; }},
    {"baton_stale_epochs_total", "Offsets refused because another consumer had the seat.", kCounter,
     [](const StreamStats& all) { return all.groups.stale_epochs_total; }},
}};

/// One number of KvStats, and the name of its metric.
struct KvMetric {
  const char* name;
  const char* help;
  MetricType type;
  std::uint64_t (*value)(const KvStats&);
};

constexpr std::array<KvMetric, 8> kKvMetrics = {{
    {"baton_kv_buckets", "Buckets.", kGauge, [](const KvStats& all) { return all.totals.buckets; }},
    {"baton_kv_keys", "Keys.", kGauge, [](const KvStats& all) { return all.totals.keys; }},
    {"baton_kv_bytes", "Bytes of keys and values.", kGauge,
     [](const KvStats& all) { return all.totals.bytes; }},
    {"baton_kv_changes_total", "Puts, removals and expiries.", kCounter,
     [](const KvStats& all) { return all.totals.changes_total; }},
    {"baton_kv_refused_total", "Writes whose expected revision was not the key's.", kCounter,
     [](const KvStats& all) { return all.totals.refused_total; }},
    {"baton_kv_expired_total", "Keys that expired.", kCounter,
     [](const KvStats& all) { return all.totals.expired_total; }},
    {"baton_kv_watches", "Open watches.", kGauge, [](const KvStats& all) { return all.watches; }},
    {"baton_kv_watches_fell_behind_total",
     "Watches that were too slow, or resumed too late, and began again.", kCounter,
     [](const KvStats& all) { return all.totals.fell_behind_total; }},
}};

MetricFamily calls(const Counters& counters) {
  MetricFamily family = make_family("baton_api_calls_total", "Calls that ended.", kCounter);
  for (const OperationInfo& operation : kOperations) {
    for (std::size_t code = 0; code < Counters::kCodes; ++code) {
      const std::uint64_t count =
          counters.calls[index_of(operation.id)][code].load(std::memory_order_relaxed);
      // One series per pair that has happened: most never do.
      if (count == 0) continue;
      add_value(family, {{"method", std::string(operation.name)}, {"code", kCodeNames[code]}},
                static_cast<double>(count));
    }
  }
  return family;
}

MetricFamily call_latencies(const Counters& counters) {
  MetricFamily family =
      make_family("baton_api_call_seconds", "Time from the request of a unary call to its answer.",
                  MetricType::Histogram);
  for (const OperationInfo& operation : kOperations) {
    const Latencies latencies = counters.latencies[index_of(operation.id)].read();
    if (latencies.total() == 0) continue;
    add_latencies(family, {{"method", std::string(operation.name)}}, latencies);
  }
  return family;
}

MetricFamily fsyncs(const std::vector<ShardStats>& shards) {
  MetricFamily family =
      make_family("baton_fsync_seconds", "Time of an fsync, of a journal or a stream's partition.",
                  MetricType::Histogram);
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    const std::string number = std::to_string(shard);
    add_latencies(family, {{"shard", number}, {"file", "journal"}}, shards[shard].journal_syncs);
    add_latencies(family, {{"shard", number}, {"file", "partition"}},
                  shards[shard].partition_syncs);
  }
  return family;
}

MetricFamily gauge(const char* name, const char* help, std::int64_t value) {
  MetricFamily family = make_family(name, help, kGauge);
  add_value(family, {}, static_cast<double>(value));
  return family;
}

/// A number of the connections to the gRPC port.
struct ConnectionMetric {
  const char* name;
  const char* help;
  MetricType type;
  std::atomic<std::uint64_t> ConnectionCounters::* value;
};

constexpr std::array<ConnectionMetric, 4> kConnectionMetrics = {{
    {"baton_connections_open", "Connections to the gRPC port.", kGauge, &ConnectionCounters::open},
    {"baton_connections_max", "The most connections that are accepted.", kGauge,
     &ConnectionCounters::max},
    {"baton_connections_total", "Connections accepted so far.", kCounter,
     &ConnectionCounters::accepted_total},
    {"baton_handshakes_failed_total", "TLS handshakes that failed.", kCounter,
     &ConnectionCounters::handshakes_failed_total},
}};

void add_connections(const ConnectionCounters& counters, std::vector<MetricFamily>& families) {
  for (const ConnectionMetric& metric : kConnectionMetrics) {
    add_value(families.emplace_back(make_family(metric.name, metric.help, metric.type)), {},
              static_cast<double>((counters.*metric.value).load(std::memory_order_relaxed)));
  }
  MetricFamily& refused = families.emplace_back(
      make_family("baton_connections_refused_total", "Connections refused, by reason.", kCounter));
  const auto add_refused = [&](const char* reason, const std::atomic<std::uint64_t>& value) {
    add_value(refused, {{"reason", reason}},
              static_cast<double>(value.load(std::memory_order_relaxed)));
  };
  add_refused("full", counters.refused_full_total);
  add_refused("silent", counters.refused_silent_total);
  add_refused("foreign", counters.refused_foreign_total);
}

}  // namespace

std::string metrics_text(const ServerState& state, const ServerFacts& facts) {
  std::vector<ShardStats> shards(state.broker.shards());
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    shards[shard] = state.broker.stats(shard);
  }
  std::vector<MetricFamily> families;
  for (const ShardMetric& metric : kShardMetrics) {
    MetricFamily& family =
        families.emplace_back(make_family(metric.name, metric.help, metric.type));
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      add_value(family, {{"shard", std::to_string(shard)}},
                static_cast<double>(shards[shard].*metric.value) * metric.unit);
    }
  }
  for (const StreamMetric& metric : kStreamMetrics) {
    MetricFamily& family =
        families.emplace_back(make_family(metric.name, metric.help, metric.type));
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      add_value(family, {{"shard", std::to_string(shard)}},
                static_cast<double>(metric.value(shards[shard].streams)));
    }
  }
  for (const KvMetric& metric : kKvMetrics) {
    MetricFamily& family =
        families.emplace_back(make_family(metric.name, metric.help, metric.type));
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      add_value(family, {{"shard", std::to_string(shard)}},
                static_cast<double>(metric.value(shards[shard].kv)));
    }
  }
  families.push_back(fsyncs(shards));
  families.push_back(handover_histogram(shards));
  add_queue_metrics(state.broker, families);
  add_group_metrics(state.broker, families);
  families.push_back(gauge("baton_api_consumers_open", "Open Lease, Consume and Subscribe streams.",
                           state.counters.consumers_open.load(std::memory_order_relaxed)));
  families.push_back(gauge("baton_api_streams_open", "Open streams of every kind.",
                           state.counters.sessions_open.load(std::memory_order_relaxed)));
  families.push_back(calls(state.counters));
  families.push_back(call_latencies(state.counters));
  add_connections(facts.connections, families);
  add_process_metrics(facts, families);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace baton
