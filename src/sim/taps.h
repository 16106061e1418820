#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "sim/plan.h"
#include "storage/disk/checkpoint_store.h"
#include "storage/journal/journal.h"

namespace baton {

/// The real journal, with a listener for what is appended; and a place for a canary.
class TappedJournal final : public Journal {
 public:
  using Listener = std::function<void(const Round&)>;

  TappedJournal(std::unique_ptr<Journal> journal, Canary canary, Listener listener)
      : journal_(std::move(journal)), canary_(canary), listener_(std::move(listener)) {}

  [[nodiscard]] std::uint64_t round_bytes_max() const override {
    return journal_->round_bytes_max();
  }
  [[nodiscard]] Position first() const override { return journal_->first(); }
  [[nodiscard]] Position next() const override { return journal_->next(); }
  Status append(Position expected, Instant now, std::string_view facts) override;
  Result<Position> sync() override { return journal_->sync(); }
  Status prepare() override { return journal_->prepare(); }
  [[nodiscard]] Room room() const override { return journal_->room(); }
  Status read(Position from, const std::function<Status(const Round&)>& visit) const override;
  Status trim(Position before) override { return journal_->trim(before); }
  [[nodiscard]] std::uint64_t bytes_since(Position from) const override {
    return journal_->bytes_since(from);
  }

 private:
  std::unique_ptr<Journal> journal_;
  Canary canary_;
  Listener listener_;
};

/// A store that may forget what was committed.
class TappedStore final : public CheckpointStore {
 public:
  TappedStore(std::unique_ptr<CheckpointStore> store, Canary canary, Random random)
      : store_(std::move(store)), canary_(canary), random_(random) {}

  Status commit(const RowBatch& batch) override;
  Status spill(const RowBatch& batch) override { return store_->spill(batch); }
  Result<std::optional<std::string>> get(Table table, std::string_view key) const override {
    return store_->get(table, key);
  }
  Result<std::vector<Row>> scan(const Range& range) const override { return store_->scan(range); }

 private:
  std::unique_ptr<CheckpointStore> store_;
  Canary canary_;
  Random random_;
};

}  // namespace baton
