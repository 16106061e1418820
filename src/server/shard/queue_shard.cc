#include "server/shard/queue_shard.h"

#include <array>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "server/shard/machines.h"

namespace baton {
namespace {

bool adds_data(const QueueCommand& command) {
  return std::holds_alternative<EnqueueCommand>(command) ||
         std::holds_alternative<TransferCommand>(command) ||
         std::holds_alternative<CreateQueueCommand>(command);
}

/// Changes of queues wait for the disk in every fsync mode.
bool must_sync(const QueueFact& fact) {
  return std::holds_alternative<QueueCreated>(fact) || std::holds_alternative<QueueUpdated>(fact) ||
         std::holds_alternative<QueueDeleted>(fact);
}

}  // namespace

/// Deliveries, ends of consumers, and messages to other shards.
class QueueShard::Told final : public HeldEffects {
 public:
  void release() override {
    for (auto& [sink, messages] : deliveries) sink->deliver(std::move(messages));
    for (auto& [sink, reason] : closed) sink->close(reason);
    for (const QueueEffects::Transfer& message : transfers) transfer(message);
  }
  [[nodiscard]] std::size_t answers() const override { return deliveries.size(); }

  std::vector<std::pair<std::shared_ptr<ConsumerSink>, std::vector<Delivery>>> deliveries;
  std::vector<std::pair<std::shared_ptr<ConsumerSink>, Error>> closed;
  std::vector<QueueEffects::Transfer> transfers;
  std::function<void(const QueueEffects::Transfer&)> transfer;
};

QueueShard::QueueShard(const MachineOptions& options, ShardLog& /*log*/)
    : round_deliveries_(options.round_deliveries),
      transfer_(options.transfer),
      machine_(options.machine, options.seed) {}

std::string_view QueueShard::name_of(const QueueCommand& command) {
  return std::visit([](const auto& wanted) { return std::string_view(wanted.queue); }, command);
}

std::size_t QueueShard::bytes_of(const QueueCommand& command) {
  if (const auto* transfer = std::get_if<TransferCommand>(&command)) {
    return kCommandBytes + transfer->message->bytes().size();
  }
  const auto* enqueue = std::get_if<EnqueueCommand>(&command);
  if (enqueue == nullptr) return kCommandBytes;
  std::size_t bytes = 0;
  for (const NewMessage& message : enqueue->messages) {
    bytes += 2 * kCommandBytes + message.payload.size() + message.fairness_key.size();
    for (const auto& [name, value] : message.headers) bytes += name.size() + value.size() + 8;
    for (const std::string& key : message.throttle_keys) bytes += key.size() + 4;
  }
  return bytes;
}

std::span<const Table> QueueShard::tables() const {
  static constexpr std::array kLoaded{tables::kQueues,  tables::kState, tables::kKeys,
                                      tables::kLeases,  tables::kDedup, tables::kOutgoing,
                                      tables::kReceived};
  return kLoaded;
}

std::span<const FactSet* const> QueueShard::facts() const {
  static constexpr std::array kSets{&kQueueFacts};
  return kSets;
}

Status QueueShard::apply(const FactFrame& frame, AppliedRows& rows, Instant now) {
  BATON_TRY(const QueueFact fact, decode_queue_fact(frame));
  return apply_fact(fact, rows, now);
}

Status QueueShard::apply_1(FactOwner /*owner*/, Decoder& in, AppliedRows& rows, Instant now) {
  BATON_TRY(const QueueFact fact, decode_queue_fact_1(in));
  return apply_fact(fact, rows, now);
}

Status QueueShard::apply_fact(const QueueFact& fact, AppliedRows& rows, Instant now) {
  if (const auto wanted = machine_.wants(fact); wanted.has_value()) {
    // The row may be among those that this very round spilled.
    BATON_TRY_STATUS(applied(rows));
    BATON_TRY_STATUS(restore(rows, wanted->first, wanted->second));
  }
  machine_.apply(fact, now);
  return {};
}

Status QueueShard::restore(AppliedRows& rows, Table table, const std::string& key) {
  BATON_TRY(std::string value, rows.get(table, key));
  return machine_.restore(table, {key, std::move(value)});
}

/// Rows that the earlier process spilled may be lost, so they are spilled again.
Status QueueShard::applied(AppliedRows& rows) {
  const RowBatch spilled = machine_.take_effects().spill;
  if (spilled.empty()) return {};
  return rows.spill(spilled);
}

Status QueueShard::caught_up(AppliedRows& rows) {
  for (const std::string& key : machine_.missing_bodies()) {
    BATON_TRY_STATUS(restore(rows, tables::kMessages, key));
  }
  return {};
}

/// Handing the delta over takes constant time; the checkpoint's writer makes the rows.
void QueueShard::seal(CheckpointJob& job) {
  job.deltas.emplace_back([delta = std::make_shared<const QueueDelta>(machine_.seal())](
                              RowBatch& rows) { append_rows(*delta, rows); });
}

Status QueueShard::start(std::uint64_t boot, RoundFacts& facts, Instant now) {
  machine_.start(boot, [&facts](const QueueFact& fact) { facts.add(fact, must_sync(fact)); }, now);
  return {};
}

Demand QueueShard::demand(const Command& command) const {
  const auto& wanted = std::get<QueueCommand>(command);
  if (!adds_data(wanted)) return {};
  return {.room = Demand::Room::addition, .bytes = bytes_of(wanted)};
}

void QueueShard::refuse(Command& command, const Error& error) const {
  auto& refused = std::get<QueueCommand>(command);
  if (auto* enqueue = std::get_if<EnqueueCommand>(&refused)) {
    enqueue->outcomes.assign(enqueue->messages.size(),
                             {.id = {}, .duplicate = false, .error = error});
  } else if (auto* create = std::get_if<CreateQueueCommand>(&refused)) {
    create->error = error;
  } else if (auto* transfer = std::get_if<TransferCommand>(&refused)) {
    transfer->error = error;
  }
}

Progress QueueShard::execute(Command& command, Instant now) {
  auto& wanted = std::get<QueueCommand>(command);
  Progress progress = machine_.execute(wanted, now);
  if (auto* attach = std::get_if<AttachCommand>(&wanted)) {
    if (!attach->error.has_value()) sinks_[attach->consumer] = attach->sink;
  } else if (auto* detach = std::get_if<DetachCommand>(&wanted)) {
    sinks_.erase(detach->consumer);
  }
  return progress;
}

Progress QueueShard::resume(Command& command, const std::vector<Row>& rows, bool exhausted,
                            Instant now) {
  return machine_.resume(std::get<QueueCommand>(command), rows, exhausted, now);
}

void QueueShard::take_rows(const ReadDone& read, Instant now) {
  ++refills_done_;
  const auto entry = refills_.find(read.number);
  BATON_ASSERT(entry != refills_.end());
  const Refill refill{std::move(entry->second), read.rows, read.exhausted};
  refills_.erase(entry);
  machine_.refill(refill, now);
}

bool QueueShard::tick(Instant now) {
  const bool more = machine_.expire(now, round_deliveries_);
  return machine_.deliver(now, round_deliveries_) || more;
}

void QueueShard::take_effects(Held& held) {
  QueueEffects effects = machine_.take_effects();
  rows_missing_ += effects.rows_missing;
  if (!effects.spill.empty()) {
    spilled_messages_ += effects.spilled_messages;
    held.jobs.emplace_back(SpillJob{std::move(effects.spill)});
  }
  for (QueueEffects::RefillRequest& request : effects.refills) {
    const std::uint64_t number = next_refill_++;
    held.jobs.emplace_back(ReadJob{this, number, request.range});
    refills_.emplace(number, std::move(request));
  }
  if (effects.grants.empty() && effects.closed.empty() && effects.transfers.empty()) return;
  auto told = std::make_unique<Told>();
  // Deliveries of one round to one consumer are sent together.
  std::unordered_map<ConsumerNumber, std::size_t> places;
  for (QueueEffects::Grant& grant : effects.grants) {
    const auto [place, added] = places.try_emplace(grant.consumer, told->deliveries.size());
    if (added) told->deliveries.emplace_back(sinks_.at(grant.consumer), std::vector<Delivery>{});
    told->deliveries[place->second].second.push_back(std::move(grant.delivery));
  }
  for (const QueueEffects::Closed& closed : effects.closed) {
    const auto sink = sinks_.find(closed.consumer);
    if (sink != sinks_.end()) told->closed.emplace_back(sink->second, closed.reason);
  }
  told->transfers = std::move(effects.transfers);
  if (!told->transfers.empty()) told->transfer = transfer_;
  held.effects.push_back(std::move(told));
}

void QueueShard::add_stats(ShardStats& stats) const {
  const QueueStats& totals = machine_.totals();
  stats.spilled_messages += spilled_messages_;
  stats.refills += refills_done_;
  stats.rows_missing += rows_missing_;
  stats.payload_bytes = machine_.payload_bytes();
  stats.enqueued = totals.enqueued_total;
  stats.delivered = totals.delivered_total;
  stats.acked = totals.acked_total;
  stats.nacked = totals.nacked_total;
  stats.lease_expired = totals.lease_expired_total;
  stats.dead_lettered = totals.dead_lettered_total;
  stats.dropped = totals.dropped_total;
  stats.deduplicated = totals.deduplicated_total;
  stats.lease_lost = machine_.lease_lost_total();
}

}  // namespace baton
