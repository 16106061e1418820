#include "server/http/queue_metrics.h"

#include <algorithm>
#include <cstdint>

#include "server/session/ask_shard.h"
#include "server/session/limits.h"

namespace baton {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

/// One family of metrics for each number.
struct QueueFamilies {
  MetricFamily ready =
      make_family("baton_queue_ready", "Messages that wait for a consumer.", MetricType::Gauge);
  MetricFamily leased =
      make_family("baton_queue_leased", "Messages that consumers hold.", MetricType::Gauge);
  MetricFamily delayed =
      make_family("baton_queue_delayed", "Messages that are not due yet.", MetricType::Gauge);
  MetricFamily oldest =
      make_family("baton_queue_oldest_age_seconds",
                  "Age of the oldest message that waits for a consumer.", MetricType::Gauge);
  MetricFamily consumers =
      make_family("baton_queue_consumers", "Connected consumers.", MetricType::Gauge);
  MetricFamily dead =
      make_family("baton_queue_dead_letters_total",
                  "Messages of the queue whose attempts were used up.", MetricType::Counter);

  void add(const QueueDescription& queue, Instant now) {
    const Labels labels = {{"queue", queue.name}};
    add_value(ready, labels, static_cast<double>(queue.stats.ready));
    add_value(leased, labels, static_cast<double>(queue.stats.leased));
    add_value(delayed, labels, static_cast<double>(queue.stats.delayed));
    // Left out if unknown: 0 would mean that no message waits.
    if (queue.oldest.has_value() || queue.stats.ready == 0) {
      const Duration age = now - queue.oldest.value_or(now);
      add_value(oldest, labels, seconds_of(std::max(age, Duration{0})));
    }
    add_value(consumers, labels, static_cast<double>(queue.stats.consumers));
    add_value(dead, labels, static_cast<double>(queue.stats.dead_lettered_total));
  }
};

}  // namespace

void add_queue_metrics(Broker& broker, Families& families) {
  QueueFamilies shown;
  std::uint64_t room = limits::kQueuesInMetrics;
  std::uint64_t left_out = 0;
  for (std::size_t shard = 0; shard < broker.shards(); ++shard) {
    ListQueuesCommand wanted;
    wanted.described_max = room;
    wanted.with_oldest = true;
    const auto answer = ask_shard(broker, shard, std::move(wanted));
    if (!answer.has_value()) continue;
    for (const QueueDescription& queue : answer->descriptions) shown.add(queue, broker.now());
    room -= std::min<std::uint64_t>(room, answer->descriptions.size());
    left_out += answer->left_out;
  }
  for (MetricFamily* const family : {&shown.ready, &shown.leased, &shown.delayed, &shown.oldest,
                                     &shown.consumers, &shown.dead}) {
    families.push_back(std::move(*family));
  }
  add_value(
      families.emplace_back(make_family(
          "baton_queues_not_shown", "Queues that are not shown individually.", MetricType::Gauge)),
      {}, static_cast<double>(left_out));
}

}  // namespace baton
