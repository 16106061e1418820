#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/bytes.h"
#include "core/queue/machine.h"

/// For tests only: a QueueMachine with all that a shard gives it, in memory, under a clock that the
/// test moves.
namespace baton::machine_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

inline constexpr Instant kStart{1'700'000'000'000'000'000};

/// The checkpoint's tables as ordered maps.
class MapStore {
 public:
  using Rows = std::map<std::string, std::string>;

  void apply(const RowBatch& batch) {
    for (const RowChange& change : batch.changes()) {
      Rows& rows = tables_[change.table.value];
      switch (change.kind) {
        case RowChange::Kind::put: rows[change.key] = change.value; break;
        case RowChange::Kind::erase: rows.erase(change.key); break;
        case RowChange::Kind::erase_range:
          rows.erase(rows.lower_bound(change.key), rows.lower_bound(change.value));
          break;
      }
    }
  }

  /// The rows of the range, and whether the range has no further rows.
  [[nodiscard]] std::pair<std::vector<Row>, bool> scan(const RowRange& range) const {
    std::vector<Row> found;
    std::size_t bytes = 0;
    const Rows& rows = table(range.table);
    for (auto row = rows.lower_bound(range.begin); row != rows.end() && row->first < range.end;
         ++row) {
      found.push_back({row->first, row->second});
      bytes += row->first.size() + row->second.size();
      if (found.size() >= range.rows_max || bytes >= range.bytes_max) return {found, false};
    }
    return {found, true};
  }

  [[nodiscard]] const Rows& table(Table table) const { return tables_.at(table.value); }

 private:
  std::array<Rows, tables::kAll.size()> tables_;
};

/// A machine, its store, its journal and its clock. A restart keeps what a disk would keep: the
/// store, and the facts since the last checkpoint, as bytes.
class World {
 public:
  explicit World(QueueMachine::Options options = {}) : options_(options) { boot(); }

  [[nodiscard]] QueueMachine& machine() { return *machine_; }
  [[nodiscard]] const MapStore& store() const { return store_; }
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::uint64_t boots() const { return boot_; }

  /// Executes the command to its end, including its reads and waits.
  template <class Command>
  Command run(Command wanted) {
    QueueCommand command = std::move(wanted);
    Progress progress = machine_->execute(command, now_);
    while (progress.kind != Progress::Kind::done) {
      take_effects();
      if (progress.kind == Progress::Kind::waits) {
        now_ = std::max(now_, progress.until);
        progress = machine_->resume(command, {}, false, now_);
      } else {
        const auto [rows, exhausted] = store_.scan(progress.rows);
        rows_read += rows.size();
        progress = machine_->resume(command, rows, exhausted, now_);
      }
    }
    take_effects();
    return std::get<Command>(std::move(command));
  }

  /// Handles deadlines, deliveries and refills at this instant, until nothing is left to do.
  void settle() {
    bool more = true;
    while (more) {
      more = machine_->expire(now_, 1000);
      more = machine_->deliver(now_, 1000) || more;
      take_effects();
      if (refills_by_hand) continue;
      more = !refills_.empty() || !refills_read_.empty() || more;
      read_refills();
      bring_refills();
    }
  }

  void advance(Duration by) {
    now_ = now_ + by;
    settle();
  }
  /// Moves the clock from deadline to deadline, as a shard wakes up.
  void advance_in_steps(Duration by) {
    const Instant end = now_ + by;
    settle();
    while (machine_->next_deadline() <= end) {
      now_ = std::max(now_ + Duration{1}, machine_->next_deadline());
      settle();
    }
    now_ = std::max(now_, end);
  }

  // Short forms.
  QueueDescription create(const std::string& queue, const QueueSettingsPatch& settings = {}) {
    const auto done = run(
        CreateQueueCommand{.queue = queue, .settings = settings, .error = {}, .description = {}});
    BATON_ASSERT(!done.error.has_value());
    return done.description;
  }
  EnqueueOutcome send(const std::string& queue, NewMessage message) {
    return run(EnqueueCommand{.queue = queue, .messages = {std::move(message)}, .outcomes = {}})
        .outcomes.at(0);
  }
  Uuid send(const std::string& queue, const std::string& payload, const std::string& key = "") {
    NewMessage message;
    message.payload = payload;
    message.fairness_key = key;
    const EnqueueOutcome outcome = send(queue, std::move(message));
    BATON_ASSERT(!outcome.error.has_value());
    return outcome.id;
  }
  /// Sends "<prefix>1" to "<prefix>n".
  void send_many(const std::string& queue, const std::string& prefix, int count,
                 const std::string& key = "") {
    for (int i = 1; i <= count; ++i) send(queue, prefix + std::to_string(i), key);
  }
  AttachCommand attach_as(AttachCommand attach) { return run(std::move(attach)); }
  ConsumerNumber attach(const std::string& queue, const std::string& consumer_id,
                        std::uint32_t in_flight_max = limits::kInFlightDefault,
                        std::uint32_t concurrency = 1) {
    const ConsumerNumber number{++consumers_};
    const auto done = run(AttachCommand{.queue = queue,
                                        .consumer = number,
                                        .consumer_id = consumer_id,
                                        .in_flight_max = in_flight_max,
                                        .credit = {},
                                        .concurrency = concurrency,
                                        .sink = {},
                                        .error = {}});
    BATON_ASSERT(!done.error.has_value());
    return number;
  }
  void detach(const std::string& queue, ConsumerNumber consumer,
              std::vector<LeaseToken> unwritten = {}) {
    run(DetachCommand{.queue = queue, .consumer = consumer, .unwritten = std::move(unwritten)});
  }
  void detach_orderly(const std::string& queue, ConsumerNumber consumer) {
    run(DetachCommand{.queue = queue, .consumer = consumer, .unwritten = {}, .orderly = true});
  }
  void begin(const std::string& queue, ConsumerNumber consumer, std::vector<LeaseToken> tokens) {
    run(BegunCommand{.queue = queue, .consumer = consumer, .tokens = std::move(tokens)});
  }
  ItemOutcome ack(const std::string& queue, LeaseToken token) {
    return run(AckCommand{.queue = queue, .tokens = {token}, .outcomes = {}}).outcomes.at(0);
  }
  ItemOutcome nack(const std::string& queue, LeaseToken token, Retry retry = {},
                   std::string reason = "") {
    return run(NackCommand{
                   .queue = queue, .items = {{token, retry, std::move(reason)}}, .outcomes = {}})
        .outcomes.at(0);
  }
  ItemOutcome extend(const std::string& queue, LeaseToken token, Duration timeout = {}) {
    return run(ExtendCommand{.queue = queue, .items = {{token, timeout}}, .outcomes = {}})
        .outcomes.at(0);
  }
  ItemOutcome cancel(const std::string& queue, Uuid id) {
    return run(CancelCommand{.queue = queue, .ids = {id}, .outcomes = {}, .row_read = {}})
        .outcomes.at(0);
  }
  QueueDescription describe(const std::string& queue) {
    return run(DescribeQueueCommand{.queue = queue, .error = {}, .description = {}}).description;
  }
  QueueStats stats(const std::string& queue) { return describe(queue).stats; }

  /// The deliveries to `consumer` since the last call.
  std::vector<Delivery> take(ConsumerNumber consumer) {
    settle();
    return std::exchange(delivered_[consumer.value], {});
  }
  /// The same, as payloads.
  std::vector<std::string> take_payloads(ConsumerNumber consumer) {
    std::vector<std::string> payloads;
    for (const Delivery& delivery : take(consumer)) {
      payloads.emplace_back(delivery.message->payload());
    }
    return payloads;
  }
  /// Reads and acks everything deliverable, in order, by a consumer made for this.
  std::vector<std::string> drain(const std::string& queue) {
    const ConsumerNumber consumer = attach(queue, "drain", 100'000);
    std::vector<std::string> payloads;
    for (auto batch = take(consumer); !batch.empty(); batch = take(consumer)) {
      for (const Delivery& delivery : batch) {
        payloads.emplace_back(delivery.message->payload());
        ack(queue, delivery.token);
      }
    }
    detach(queue, consumer);
    return payloads;
  }

  // Refills in two steps, as a shard does them: rows are read first, and brought some rounds later.
  void read_refills() {
    for (QueueEffects::RefillRequest& request : std::exchange(refills_, {})) {
      auto [rows, exhausted] = store_.scan(request.range);
      rows_read += rows.size();
      refills_read_.push_back({std::move(request), std::move(rows), exhausted});
    }
  }
  void bring_refills() {
    for (const Refill& refill : std::exchange(refills_read_, {})) machine_->refill(refill, now_);
    take_effects();
  }
  [[nodiscard]] std::size_t refills_wanted() const { return refills_.size(); }
  [[nodiscard]] const QueueEffects::RefillRequest& wanted_refill() const { return refills_.at(0); }

  // Checkpoints in two steps: sealed at once, committed by the background later.
  void seal() {
    take_effects();
    BATON_ASSERT(!sealed_.has_value());
    sealed_.emplace(machine_->seal());
    sealed_facts_ = journal_.size();
  }
  void commit() {
    BATON_ASSERT(sealed_.has_value());
    last_batch = {};
    append_rows(*sealed_, last_batch);
    store_.apply(last_batch);
    sealed_.reset();
    journal_.erase(journal_.begin(), journal_.begin() + static_cast<std::ptrdiff_t>(sealed_facts_));
  }
  void checkpoint() {
    if (sealed_.has_value()) commit();
    seal();
    commit();
  }
  [[nodiscard]] bool has_sealed() const { return sealed_.has_value(); }

  /// The process dies and starts again: the store stays, and the journal is replayed.
  void crash() {
    take_effects();
    machine_.reset();
    sealed_.reset();
    refills_.clear();
    refills_read_.clear();
    delivered_.clear();
    boot();
  }
  /// A clean stop: the checkpoint holds everything.
  void restart() {
    checkpoint();
    crash();
  }

  bool refills_by_hand = false;
  std::vector<QueueFact> facts;  // Since the test last cleared them.
  std::vector<QueueEffects::Closed> closed;
  std::vector<QueueEffects::Transfer> transfers;
  RowBatch last_batch;  // Of the last checkpoint.
  std::uint64_t rows_missing = 0;
  std::uint64_t rows_read = 0;
  std::uint64_t spilled_messages = 0;

 private:
  struct Journaled {
    Instant now;
    std::string bytes;
  };

  void boot() {
    machine_ = std::make_unique<QueueMachine>(options_, ++boot_);
    for (const Table table : {tables::kQueues, tables::kState, tables::kKeys, tables::kLeases,
                              tables::kDedup, tables::kOutgoing, tables::kReceived}) {
      for (const auto& [key, value] : store_.table(table)) {
        BATON_ASSERT(machine_->load(table, {key, value}).has_value());
      }
    }
    machine_->loaded();
    for (const Journaled& entry : journal_) replay(entry);
    for (const std::string& key : machine_->missing_bodies()) fetch(tables::kMessages, key);
    machine_->start(boot_, [this](const QueueFact& fact) { record(fact); }, now_);
    take_effects();
  }

  void replay(const Journaled& entry) {
    Decoder in(entry.bytes);
    const Result<QueueFact> fact = decode_queue_fact(in);
    BATON_ASSERT(fact.has_value() && in.finish());
    if (const auto wanted = machine_->wants(*fact); wanted.has_value()) {
      fetch(wanted->first, wanted->second);
    }
    machine_->apply(*fact, entry.now);
    take_effects();
  }

  void fetch(Table table, const std::string& key) {
    const auto row = store_.table(table).find(key);
    BATON_ASSERT(row != store_.table(table).end());
    BATON_ASSERT(machine_->restore(table, {key, row->second}).has_value());
  }

  void record(const QueueFact& fact) {
    facts.push_back(fact);
    std::string bytes;
    Encoder out(bytes);
    encode(out, fact);
    journal_.push_back({now_, std::move(bytes)});
  }

  void take_effects() {
    QueueEffects effects = machine_->take_effects();
    store_.apply(effects.spill);
    spilled_messages += effects.spilled_messages;
    rows_missing += effects.rows_missing;
    for (auto& grant : effects.grants) {
      delivered_[grant.consumer.value].push_back(std::move(grant.delivery));
    }
    std::ranges::move(effects.closed, std::back_inserter(closed));
    std::ranges::move(effects.transfers, std::back_inserter(transfers));
    std::ranges::move(effects.refills, std::back_inserter(refills_));
  }

  QueueMachine::Options options_;
  MapStore store_;
  std::deque<Journaled> journal_;
  Instant now_ = kStart;
  std::uint64_t boot_ = 0;
  std::uint64_t consumers_ = 0;
  std::unique_ptr<QueueMachine> machine_;
  std::map<std::uint64_t, std::vector<Delivery>> delivered_;
  std::vector<QueueEffects::RefillRequest> refills_;
  std::vector<Refill> refills_read_;
  std::optional<QueueDelta> sealed_;
  std::size_t sealed_facts_ = 0;
};

inline NewMessage message(std::string payload) {
  NewMessage made;
  made.payload = std::move(payload);
  return made;
}

template <class Fact>
std::size_t count_facts(const std::vector<QueueFact>& facts) {
  return static_cast<std::size_t>(std::ranges::count_if(
      facts, [](const QueueFact& fact) { return std::holds_alternative<Fact>(fact); }));
}

}  // namespace baton::machine_test
