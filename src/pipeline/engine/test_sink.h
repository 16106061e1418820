#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/engine/dead_letter.h"
#include "pipeline/engine/sink.h"

/// For tests: a sink in memory.
namespace baton::pipeline {

/// A table in memory that can be unavailable, hang or be slow. A record's value says what happens
/// to it: "broken", "poison", "odd", "twice"; any other value is written.
class MemorySink : public Sink {
 public:
  /// Identifies a record by partition and offset.
  using Id = std::pair<std::uint32_t, std::int64_t>;
  using MaybeError = std::optional<flow::SinkError>;

  MemorySink() = default;
  /// The same table, but available or not on its own: a second connection to one database.
  explicit MemorySink(MemorySink& other) : table_(other.table_) {}

  Result<Findings> check(bool /*apply*/) override { return Findings(); }
  std::unique_ptr<Preparer> preparer() override { return std::make_unique<Decoder>(); }
  std::unique_ptr<LaneWriter> writer(std::uint32_t /*lane*/) override {
    return std::make_unique<Writer>(*this);
  }
  MaybeError probe() override {
    ++probes;
    if (before_probe) before_probe();
    return probe_lies ? std::nullopt : error();
  }
  [[nodiscard]] std::string name() const override { return "memory"; }
  [[nodiscard]] bool is_transactional() const override { return true; }
  std::expected<SinkMarks, flow::SinkError> claim(std::uint32_t partition,
                                                  std::int64_t /*next*/) override {
    ++claims;
    if (before_claim) before_claim();
    if (auto problem = error()) return std::unexpected(*std::move(problem));
    if (partition >= claimable) return std::unexpected(outage());
    constexpr std::size_t kLanesMax = 16;
    return SinkMarks{
        .epoch = 1, .next = std::vector<std::int64_t>(kLanesMax, begin), .begin = begin};
  }

  void set_error(MaybeError error) {
    const std::scoped_lock lock(mutex_);
    error_ = std::move(error);
  }
  void set_out(bool out) { set_error(out ? MaybeError(outage()) : std::nullopt); }

  // Set before the sink is used.
  std::function<MaybeError(std::span<const Item>)> before_write;
  std::function<void()> before_claim;
  std::function<void()> before_probe;

  std::atomic<bool> probe_lies{false};                // A read-only database answers SELECT 1.
  std::atomic<bool> hanging{false};                   // Writes do not return.
  std::atomic<std::chrono::milliseconds> slowness{};  // Of each batch.
  std::atomic<std::size_t> halve_above{1'000'000};
  std::atomic<std::uint32_t> claimable{1'000'000};  // Claims of partitions from this one on fail.
  std::atomic<std::int64_t> begin{0};               // Where claimed partitions begin.
  std::atomic<int> probes{0};
  std::atomic<int> claims{0};

  [[nodiscard]] std::size_t size() const {
    const std::scoped_lock lock(table_->mutex);
    return table_->rows.size();
  }
  /// Records that were written again and recognised.
  [[nodiscard]] std::uint64_t replays() const { return table_->replays; }
  /// Counted by partition and key; replays do not count.
  [[nodiscard]] std::uint64_t out_of_order() const { return table_->out_of_order; }
  [[nodiscard]] std::map<Id, Record> rows() const {
    const std::scoped_lock lock(table_->mutex);
    return table_->rows;
  }
  [[nodiscard]] bool contains(const Id& id) const {
    const std::scoped_lock lock(table_->mutex);
    return table_->rows.contains(id);
  }
  [[nodiscard]] std::set<std::string> values() const {
    std::set<std::string> result;
    for (const auto& [id, record] : rows()) result.insert(record.value);
    return result;
  }
  /// The first offset from `first` on that was not written.
  [[nodiscard]] std::int64_t contiguous(std::uint32_t partition, std::int64_t first = 0) const {
    const std::scoped_lock lock(table_->mutex);
    while (table_->rows.contains({partition, first})) ++first;
    return first;
  }

 private:
  struct Document : Prepared {
    explicit Document(const Record& record) : name("order-" + std::to_string(record.offset)) {}
    [[nodiscard]] std::string_view key() const override { return name; }
    std::string name;
  };
  class Decoder : public Preparer {
    std::expected<std::unique_ptr<Prepared>, Rejection> prepare(const Record& record) override {
      if (record.value.starts_with("broken")) {
        return std::unexpected(Rejection{"decode", "json", "broken"});
      }
      return std::make_unique<Document>(record);
    }
  };
  class Writer : public LaneWriter {
   public:
    explicit Writer(MemorySink& sink) : sink_(sink) {}
    MaybeError write(std::span<Item> items) override {
      auto error = sink_.refuse(items);
      if (!error.has_value()) sink_.put(items);
      return error;
    }

   private:
    MemorySink& sink_;
  };
  struct Table {
    std::mutex mutex;
    std::map<Id, Record> rows;
    std::map<std::pair<std::uint32_t, std::string>, std::int64_t> last;
    std::atomic<std::uint64_t> replays{0};
    std::atomic<std::uint64_t> out_of_order{0};
  };

  static flow::SinkError outage() { return {flow::ErrorClass::outage, "", "connection refused"}; }
  MaybeError error() const {
    const std::scoped_lock lock(mutex_);
    return error_;
  }
  MaybeError refuse(std::span<const Item> items) {
    // Limited, so that a failing test ends, too.
    constexpr int kHangs = 30'000;
    for (int i = 0; hanging && i < kHangs; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(slowness.load());
    if (before_write) {
      if (auto problem = before_write(items)) return problem;
    }
    if (auto problem = error()) return problem;
    if (items.size() > halve_above) {
      return flow::SinkError{.error_class = flow::ErrorClass::retry,
                             .code = "57014",
                             .text = "slow",
                             .halve_batch = true};
    }
    for (const Item& item : items) {
      const std::string& value = item.record.value;
      if (value == "poison") return flow::SinkError{flow::ErrorClass::poison, "22001", "too long"};
      if (value == "odd") return flow::SinkError{flow::ErrorClass::unknown, "XX000", "odd"};
    }
    return std::nullopt;
  }
  void put(std::span<Item> items) {
    const std::scoped_lock lock(table_->mutex);
    for (Item& item : items) {
      const Record& record = item.record;
      item.fate = record.value == "twice" ? Fate::duplicate : Fate::applied;
      if (item.fate == Fate::duplicate) continue;
      if (!table_->rows.try_emplace({record.partition, record.offset}, record).second) {
        ++table_->replays;
        continue;
      }
      std::int64_t& last = table_->last[{record.partition, record.key}];
      if (record.offset < last) ++table_->out_of_order;
      last = record.offset;
    }
  }

  std::shared_ptr<Table> table_ = std::make_shared<Table>();
  mutable std::mutex mutex_;
  MaybeError error_;
};

class MemoryLetters : public DeadLetterTarget {
 public:
  Status write(std::span<const DeadLetter> letters) override {
    if (down) return Error{Errc::unavailable, "down"};
    const std::scoped_lock lock(mutex_);
    for (const DeadLetter& letter : letters) {
      if (letter.record->bytes() > bytes_max) return Error{Errc::invalid_argument, "too long"};
    }
    for (const DeadLetter& letter : letters) ids_.insert(letter.id());
    return {};
  }
  [[nodiscard]] std::string name() const override { return "memory"; }
  [[nodiscard]] std::set<std::string> ids() const {
    const std::scoped_lock lock(mutex_);
    return ids_;
  }
  [[nodiscard]] std::size_t size() const { return ids().size(); }
  std::atomic<bool> down{false};
  std::atomic<std::size_t> bytes_max{1'000'000'000};

 private:
  mutable std::mutex mutex_;
  std::set<std::string> ids_;
};

}  // namespace baton::pipeline
