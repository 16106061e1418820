#include "storage/rocks/rocks_store.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdarg>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/write_batch.h>

#include "base/assert.h"
#include "storage/rocks/disk_reserve.h"
#include "storage/rocks/rocks_settings.h"
#include "storage/rocks/rocks_status.h"
#include "storage/rocks/small_files.h"
#include "storage/rocks/store_folder.h"

namespace baton {
namespace {

// A scan of at least this many bytes reads ahead by as much from the start; a shorter one is left
// to RocksDB, which begins small and grows. Not more: a scan has such a buffer for every file it
// merges.
constexpr std::size_t kReadaheadBytes = std::size_t{256} << 10U;
// The key of the commits' number, in RocksDB's default family, which is not one of our tables.
constexpr const char* kCommitKey = "commit";
// The reserve file's length: room for opening several times over (see opening_bytes).
constexpr std::uint64_t kReserveFileBytes = std::uint64_t{4} << 20U;
// Shortest pause between two checks of a thread that waits for RocksDB's threads.
constexpr std::chrono::microseconds kPauseMin{200};
constexpr std::chrono::microseconds kPauseMax{20000};

/// RocksDB does not promise that it throws no exception (threads, memory).
template <class Call>
rocksdb::Status guarded(const Call& call) {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return rocksdb::Status::Aborted("exception", thrown.what());
  }
}

/// Keeps the first error of RocksDB's own threads, and keeps RocksDB from trying to recover from
/// it. Thread-safe: RocksDB's threads write, ours read.
class FirstError final : public rocksdb::EventListener {
 public:
  [[nodiscard]] const char* Name() const override { return "baton.first_error"; }
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    const std::lock_guard lock(mutex_);
    if (error_.ok()) error_ = *error;
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

  [[nodiscard]] rocksdb::Status get() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  mutable std::mutex mutex_;
  rocksdb::Status error_;
};

/// Logs nothing: a reader must not leave a LOG in the folder.
class SilentLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, std::va_list) override {}
};

/// An open database, declared between what it uses and the handles of its tables, so that they are
/// destroyed in the right order.
struct OpenDb {
  std::unique_ptr<rocksdb::Env> system;
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;

  OpenDb() = default;
  OpenDb(OpenDb&&) = default;
  OpenDb& operator=(OpenDb&&) = delete;
  OpenDb(const OpenDb&) = delete;
  OpenDb& operator=(const OpenDb&) = delete;
  ~OpenDb() {
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      if (db != nullptr) db->DestroyColumnFamilyHandle(handle);
    }
  }
};

class Store final : public RocksStore {
 public:
  struct Parts {
    std::string folder;
    OpenDb open;
    std::shared_ptr<FirstError> error;     // Null if read-only.
    std::shared_ptr<DiskReserve> reserve;  // Null if read-only.
  };

  Store(Parts parts, std::span<const TableName> tables)
      : folder_(std::move(parts.folder)),
        open_(std::move(parts.open)),
        first_error_(std::move(parts.error)),
        reserve_(std::move(parts.reserve)) {
    for (const TableName& name : tables) {
      BATON_ASSERT(by_table_[name.table.value] == nullptr);
      names_.emplace_back(name.name);
      for (rocksdb::ColumnFamilyHandle* handle : open_.handles) {
        if (handle->GetName() == name.name) by_table_[name.table.value] = handle;
      }
      by_order_.push_back(by_table_[name.table.value]);
      known_[name.table.value] = true;
    }
  }

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store() override {
    if (reserve_ != nullptr) reserve_->close();
  }

  /// Reads the number of the folder's last commit. Called once, before anything else.
  Status begin() {
    BATON_TRY(commits_, last_commit_in_files());
    if (reserve_ != nullptr) {
      reserve_->set_open();
      refill();
    }
    return {};
  }

  Status commit(const RowBatch& batch) override {
    const std::lock_guard lock(commit_mutex_);
    const std::uint64_t number = ++commits_;
    BATON_TRY_STATUS(write(batch, number));
    BATON_TRY_STATUS(flush(number));
    refill();
    merge_files();
    return {};
  }

  Status spill(const RowBatch& batch) override {
    // A removal that a crash forgets would bring back a row that the journal no longer explains.
    for (const RowChange& change : batch.changes()) {
      BATON_ASSERT(change.kind == RowChange::Kind::put);
    }
    return write(batch, std::nullopt);
  }

  Result<std::optional<std::string>> get(Table table, std::string_view key) const override {
    rocksdb::ColumnFamilyHandle* handle = handle_of(table);
    if (handle == nullptr) return std::optional<std::string>{};
    std::string value;
    const rocksdb::Status status = guarded([&] {
      return open_.db->Get(rocksdb::ReadOptions(), handle, rocksdb::Slice(key.data(), key.size()),
                           &value);
    });
    if (status.IsNotFound()) return std::optional<std::string>{};
    if (!status.ok()) return rocks_error(status, "reading", folder_);
    return std::optional<std::string>{std::move(value)};
  }

  Result<std::vector<Row>> scan(const Range& range) const override {
    std::vector<Row> rows;
    rocksdb::ColumnFamilyHandle* handle = handle_of(range.table);
    if (handle == nullptr || range.begin >= range.end) return rows;
    const rocksdb::Status status = guarded([&] { return scan_into(rows, handle, range); });
    if (!status.ok()) return rocks_error(status, "scanning", folder_);
    return rows;
  }

  [[nodiscard]] std::vector<TableStats> table_stats() const override {
    std::vector<TableStats> all;
    all.reserve(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
      all.push_back({.name = names_[i],
                     .rows_estimate = number(by_order_[i], "rocksdb.estimate-num-keys"),
                     .bytes = number(by_order_[i], "rocksdb.live-sst-files-size") +
                              number(by_order_[i], "rocksdb.cur-size-all-mem-tables")});
    }
    return all;
  }

 private:
  [[nodiscard]] rocksdb::ColumnFamilyHandle* handle_of(Table table) const {
    BATON_ASSERT(known_[table.value]);
    return by_table_[table.value];
  }

  [[nodiscard]] std::uint64_t number(rocksdb::ColumnFamilyHandle* handle,
                                     const char* property) const {
    std::uint64_t value = 0;
    if (handle != nullptr) open_.db->GetIntProperty(handle, property, &value);
    return value;
  }

  static rocksdb::Status add_to(rocksdb::WriteBatch& out, rocksdb::ColumnFamilyHandle* handle,
                                const RowChange& change) {
    switch (change.kind) {
      case RowChange::Kind::put: return out.Put(handle, change.key, change.value);
      case RowChange::Kind::erase: return out.Delete(handle, change.key);
      case RowChange::Kind::erase_range:
        // RocksDB refuses a range that ends before it begins; we treat it as empty.
        if (change.key >= change.value) return rocksdb::Status::OK();
        return out.DeleteRange(handle, change.key, change.value);
    }
    return rocksdb::Status::InvalidArgument("kind");
  }

  rocksdb::Status fill(rocksdb::WriteBatch& out, const RowBatch& batch,
                       std::optional<std::uint64_t> commit) const {
    for (const RowChange& change : batch.changes()) {
      rocksdb::Status status = add_to(out, handle_of(change.table), change);
      if (!status.ok()) return status;
    }
    return commit.has_value() ? out.Put(kCommitKey, std::to_string(*commit))
                              : rocksdb::Status::OK();
  }

  Status write(const RowBatch& batch, std::optional<std::uint64_t> commit) {
    if (reserve_ == nullptr) {
      return Error{Errc::failed_precondition,
                   fmt::format("the store in {} is open for reading only", folder_)};
    }
    // Room for its header and the commit's number, and for each row's tag, table and lengths.
    rocksdb::WriteBatch out(64 + batch.bytes() + 16 * batch.changes().size());
    const rocksdb::Status filled = guarded([&] { return fill(out, batch, commit); });
    if (!filled.ok()) return stopped(filled);
    // While RocksDB makes writers wait, we wait instead: only we see that it waits for space.
    for (auto pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
      BATON_TRY_STATUS(check_running());
      if (reserve_->rows_wait()) return full();
      const rocksdb::Status written =
          guarded([&] { return open_.db->Write(rocks_write_options(), &out); });
      if (written.ok()) return {};
      if (!written.IsIncomplete()) return stopped(written);
      if (reserve_->compactions_wait()) return full();
      std::this_thread::sleep_for(pause);
    }
  }

  /// Returns when commit `number` is in files: tables are flushed together, so where the number of
  /// a commit is, all of it is. Polls for the number instead of letting Flush wait, because a flush
  /// on a full disk waits until there is space, and the caller wants to know about the full disk.
  Status flush(std::uint64_t number) {
    bool begun = false;
    for (auto pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
      if (!begun) {
        BATON_TRY(begun, begin_flush());
        if (!begun && reserve_->compactions_wait()) return full();
      }
      BATON_TRY(const std::uint64_t durable, last_commit_in_files());
      BATON_ASSERT(durable <= number);
      if (durable == number) return {};
      BATON_TRY_STATUS(check_running());
      if (reserve_->rows_wait()) return full();
      std::this_thread::sleep_for(pause);
    }
  }

  /// Without room the reserve file stays as long as it is; the next commit tries again.
  void refill() const { reserve_->file().grow_to(kReserveFileBytes).PermitUncheckedError(); }

  /// Not while the disk is short of room: merging would wait for room.
  void merge_files() const {
    if (reserve_->rows_wait() || reserve_->compactions_wait()) return;
    for (rocksdb::ColumnFamilyHandle* handle : open_.handles) {
      guarded([&] {
        merge_small_files(*open_.db, handle);
        return rocksdb::Status::OK();
      }).PermitUncheckedError();
    }
  }

  /// False when RocksDB makes writers wait: the caller tries again.
  Result<bool> begin_flush() {
    const rocksdb::Status begun =
        guarded([&] { return open_.db->Flush(rocks_flush_options(), open_.handles); });
    if (!begun.ok() && !begun.IsTryAgain()) return stopped(begun);
    return begun.ok();
  }

  [[nodiscard]] Error full() const {
    return {
        Errc::disk_full,
        fmt::format("the disk of {} is full (free space: the broker goes on by itself)", folder_)};
  }

  [[nodiscard]] Status check_running() const {
    const rocksdb::Status error = first_error_->get();
    if (error.ok()) return {};
    return stopped(error);
  }

  /// RocksDB does not recover from an error of its own, so disk_full would be a wrong promise.
  [[nodiscard]] Error stopped(const rocksdb::Status& status) const {
    Error error = rocks_error(status, "writing to", folder_);
    if (error.code == Errc::disk_full) error.code = Errc::io_error;
    error.text += "; start the broker again";
    return error;
  }

  [[nodiscard]] Result<std::uint64_t> last_commit_in_files() const {
    rocksdb::ReadOptions read;
    read.read_tier = rocksdb::kPersistedTier;
    std::string text;
    const rocksdb::Status status =
        guarded([&] { return open_.db->Get(read, rocksdb::Slice(kCommitKey), &text); });
    if (status.IsNotFound()) return std::uint64_t{0};
    if (!status.ok()) return rocks_error(status, "reading", folder_);
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    if (parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size()) return number;
    return Error{Errc::store_corrupt, fmt::format("the number of the last commit in {} is \"{}\" "
                                                  "(restore the data folder from a copy)",
                                                  folder_, text)};
  }

  rocksdb::Status scan_into(std::vector<Row>& rows, rocksdb::ColumnFamilyHandle* handle,
                            const Range& range) const {
    const rocksdb::Slice end(range.end);
    rocksdb::ReadOptions read;
    read.iterate_upper_bound = &end;
    if (range.bytes_max >= kReadaheadBytes) read.readahead_size = kReadaheadBytes;
    const std::unique_ptr<rocksdb::Iterator> at(open_.db->NewIterator(read, handle));
    std::size_t bytes = 0;
    for (at->Seek(range.begin); at->Valid(); at->Next()) {
      const std::size_t row_bytes = at->key().size() + at->value().size();
      const bool full = rows.size() >= range.rows_max || bytes + row_bytes > range.bytes_max;
      if (full && !rows.empty()) break;
      bytes += row_bytes;
      rows.push_back({at->key().ToString(), at->value().ToString()});
    }
    return at->status();
  }

  std::string folder_;
  OpenDb open_;
  std::shared_ptr<FirstError> first_error_;
  std::shared_ptr<DiskReserve> reserve_;
  std::mutex commit_mutex_;
  std::uint64_t commits_ = 0;  // The number of the last commit; guarded by commit_mutex_.
  std::array<rocksdb::ColumnFamilyHandle*, 256> by_table_{};
  std::array<bool, 256> known_{};
  std::vector<rocksdb::ColumnFamilyHandle*> by_order_;
  std::vector<std::string> names_;
};

bool is_ours(const std::string& family, std::span<const TableName> tables) {
  return family == rocksdb::kDefaultColumnFamilyName ||
         std::any_of(tables.begin(), tables.end(),
                     [&](const TableName& table) { return table.name == family; });
}

/// The column families in the folder, or why it cannot be opened with `tables`.
Result<std::vector<std::string>> families_in(const std::string& folder,
                                             std::span<const TableName> tables,
                                             const rocksdb::DBOptions& options) {
  std::vector<std::string> families;
  const rocksdb::Status status =
      guarded([&] { return rocksdb::DB::ListColumnFamilies(options, folder, &families); });
  if (!status.ok()) return rocks_error(status, "opening", folder);
  for (const std::string& family : families) {
    if (is_ours(family, tables)) continue;
    return Error{Errc::store_too_new,
                 fmt::format("the store in {} has a table \"{}\" that this version does not know "
                             "(run the version that wrote it)",
                             folder, family)};
  }
  return families;
}

using Descriptors = std::vector<rocksdb::ColumnFamilyDescriptor>;

Descriptors describe(const std::vector<std::string>& families, const RocksOptions& options) {
  rocksdb::LRUCacheOptions cache_options;
  cache_options.capacity = options.cache_bytes;
  const auto cache = rocksdb::NewLRUCache(cache_options);
  const rocksdb::ColumnFamilyOptions table = rocks_table_options(options, cache);
  Descriptors descriptors;
  for (const std::string& family : families) descriptors.emplace_back(family, table);
  return descriptors;
}

/// RocksDB must find room for what it writes while it opens: see DiskReserve. The reserve file
/// holds on to that room until RocksDB asks for it, so that no other process can take it meanwhile.
Status set_aside_for_opening(DiskReserve& reserve, const std::string& folder) {
  const std::uint64_t needed = opening_bytes(folder);
  const rocksdb::IOStatus grown = reserve.file().grow_to(std::max(kReserveFileBytes, needed));
  if (!grown.ok() && !grown.IsNoSpace()) return rocks_error(grown, "opening", folder);
  const std::uint64_t found = reserve.file().bytes();
  if (found >= needed) return {};
  return Error{Errc::disk_full,
               fmt::format("the disk of {} is full: opening the store takes {} KiB, and {} KiB are "
                           "left (free that much, and start again; nothing is lost)",
                           folder, needed >> 10U, found >> 10U)};
}

}  // namespace

Result<std::unique_ptr<RocksStore>> open_rocks_store(const std::string& folder,
                                                     std::span<const TableName> tables,
                                                     const RocksOptions& options) {
  BATON_TRY_STATUS(make_store_folder(folder));
  BATON_TRY(const bool used, store_folder_is_used(folder));
  auto error = std::make_shared<FirstError>();
  rocksdb::DBOptions db_options = rocks_db_options(options);
  Store::Parts parts{.folder = folder,
                     .open = {},
                     .error = error,
                     .reserve = std::make_shared<DiskReserve>(
                         options.disk_reserve_bytes, db_options.env->GetFileSystem(), folder)};
  parts.open.system = reserve_disk(db_options.env, parts.reserve);
  db_options.env = parts.open.system.get();
  db_options.listeners.push_back(error);
  if (used) {
    BATON_TRY([[maybe_unused]] const auto known, families_in(folder, tables, db_options));
  }
  std::vector<std::string> families{rocksdb::kDefaultColumnFamilyName};
  for (const TableName& table : tables) {
    BATON_ASSERT(table.name != rocksdb::kDefaultColumnFamilyName);
    families.emplace_back(table.name);
  }
  BATON_TRY_STATUS(set_aside_for_opening(*parts.reserve, folder));
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = guarded([&] {
    return rocksdb::DB::Open(db_options, folder, describe(families, options), &parts.open.handles,
                             &db);
  });
  parts.open.db.reset(db);
  if (!status.ok()) return rocks_error(status, "opening", folder);
  auto store = std::make_unique<Store>(std::move(parts), tables);
  BATON_TRY_STATUS(store->begin());
  return store;
}

Result<std::unique_ptr<RocksStore>> open_rocks_store_read_only(const std::string& folder,
                                                               std::span<const TableName> tables) {
  BATON_TRY(const bool used, store_folder_is_used(folder));
  if (!used) return Error{Errc::not_found, fmt::format("there is no store in {}", folder)};
  BATON_TRY_STATUS(check_store_folder_unlocked(folder));
  rocksdb::DBOptions db_options = rocks_db_options({});
  db_options.create_if_missing = false;
  db_options.create_missing_column_families = false;
  db_options.info_log = std::make_shared<SilentLog>();
  BATON_TRY(const std::vector<std::string> families, families_in(folder, tables, db_options));
  Store::Parts parts{.folder = folder, .open = {}, .error = nullptr, .reserve = nullptr};
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = guarded([&] {
    return rocksdb::DB::OpenForReadOnly(db_options, folder, describe(families, {}),
                                        &parts.open.handles, &db);
  });
  parts.open.db.reset(db);
  if (!status.ok()) return rocks_error(status, "opening", folder);
  return std::make_unique<Store>(std::move(parts), tables);
}

}  // namespace baton
