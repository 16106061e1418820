#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/kv/machine.h"
#include "core/kv/rows.h"

/// A machine with what a shard would give it: a journal, a checkpoint and a clock, all in memory.
namespace baton::kv_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = KvOutcome::Verdict;

class World {
 public:
  explicit World(KvMachine::Options options = {}) : options_(options) { begin(); }

  KvMachine& machine() { return *machine_; }
  [[nodiscard]] Instant now() const { return now_; }
  void advance(Duration by) { now_ = now_ + by; }

  void create(const std::string& bucket = "b", const KvSettings& settings = {}) {
    const auto created = machine_->create_bucket(bucket, settings, now_);
    ASSERT_TRUE(created.has_value()) << to_string(created.error());
  }
  KvOutcome write(KvWrite write) {
    const auto outcome = machine_->put(std::move(write), now_);
    EXPECT_TRUE(outcome.has_value()) << to_string(outcome.error());
    return outcome.value_or(KvOutcome{});
  }
  KvOutcome put(const std::string& key, const std::string& value,
                std::optional<Duration> ttl = std::nullopt) {
    return write({.bucket = "b", .key = key, .value = value, .expected = {}, .ttl = ttl});
  }
  KvOutcome cas(const std::string& key, Revision expected, const std::string& value,
                std::optional<Duration> ttl = std::nullopt) {
    return write({.bucket = "b", .key = key, .value = value, .expected = expected, .ttl = ttl});
  }
  KvOutcome remove(const std::string& key, std::optional<Revision> expected = std::nullopt) {
    const auto outcome = machine_->remove({.bucket = "b", .key = key, .expected = expected}, now_);
    EXPECT_TRUE(outcome.has_value()) << to_string(outcome.error());
    return outcome.value_or(KvOutcome{});
  }
  KvEntryRef get(const std::string& key, const std::string& bucket = "b") {
    const auto entry = machine_->get(bucket, key, now_);
    EXPECT_TRUE(entry.has_value()) << to_string(entry.error());
    return entry.value_or(nullptr);
  }
  /// "-": there is none.
  std::string value(const std::string& key) {
    const KvEntryRef entry = get(key);
    return entry == nullptr ? "-" : entry->value;
  }
  KvPage list(KvListing listing) {
    auto page = machine_->list(listing, now_);
    EXPECT_TRUE(page.has_value()) << to_string(page.error());
    return std::move(page).value_or(KvPage{});
  }
  Revision revision(const std::string& bucket = "b") {
    const auto described = machine_->describe(bucket);
    EXPECT_TRUE(described.has_value());
    return described->revision;
  }

  /// Writes what has changed, and drops the journal before it.
  void checkpoint() {
    RowBatch batch;
    machine_->append_changed_rows(batch);
    for (const RowChange& change : batch.changes()) write_row(change);
    rows_written_ = batch.changes().size();
    journal_.clear();
  }
  /// A new life, from the rows and the facts since.
  void restart() {
    begin();
    for (const auto& [place, value] : store_) {
      const Status loaded = machine_->load(place.first, {place.second, value});
      ASSERT_TRUE(loaded.has_value()) << to_string(loaded.error());
    }
    Decoder in(journal_);
    while (!in.empty()) {
      Result<KvFact> fact = decode_kv_fact(in);
      ASSERT_TRUE(fact.has_value());
      machine_->apply(*std::move(fact));
    }
  }

  std::vector<KvFact> facts;  // Of the journal, until somebody clears them.
  [[nodiscard]] std::size_t rows_written() const { return rows_written_; }
  [[nodiscard]] std::size_t rows_stored() const { return store_.size(); }

 private:
  void begin() {
    machine_ = std::make_unique<KvMachine>(options_, [this](const KvFact& fact) {
      facts.push_back(fact);
      Encoder out(journal_);
      encode(out, fact);
    });
  }
  void write_row(const RowChange& change) {
    const std::pair place(change.table, change.key);
    switch (change.kind) {
      case RowChange::Kind::put: store_[place] = change.value; return;
      case RowChange::Kind::erase: store_.erase(place); return;
      case RowChange::Kind::erase_range:
        store_.erase(store_.lower_bound(place),
                     store_.lower_bound(std::pair(change.table, change.value)));
    }
  }

  KvMachine::Options options_;
  std::unique_ptr<KvMachine> machine_;
  std::map<std::pair<Table, std::string>, std::string> store_;
  std::string journal_;
  std::size_t rows_written_ = 0;
  Instant now_{1'700'000'000'000'000'000};
};

}  // namespace baton::kv_test
