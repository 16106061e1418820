#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "storage/disk/disk.h"

namespace baton {

/// A disk in memory that forgets, tears, fills up, flips bits and fails, the same way for the same
/// seed and the same calls. Harsher than a real one: what was not synced may be lost in any
/// combination. Thread-safe, though only one thread gives the same run twice. Files must not
/// outlive it.
///
/// Invariant: everything that was synced (the bytes of a file by File::sync, its name by
/// sync_folder) survives every crash().
class FakeDisk final : public Disk {
 public:
  explicit FakeDisk(std::uint64_t seed);

  Result<std::unique_ptr<File>> open(const std::string& path) override;
  Result<std::unique_ptr<File>> create(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& folder) const override;
  Status make_folder(const std::string& folder) override;
  /// Within one folder only.
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status sync_folder(const std::string& folder) override;
  [[nodiscard]] Result<std::uint64_t> free_bytes(const std::string& folder) const override;
  Result<std::uint64_t> random_number() override;

  /// The power fails and comes back. Each unsynced write is kept, lost, or torn in sectors of 512
  /// bytes; each unsynced creation, rename and removal is kept or lost, though none without the
  /// ones before it of the same name. Folders stay. All files opened before answer io_error from
  /// now on.
  void crash();
  /// The process dies, the machine does not: nothing is lost, but all open files answer io_error.
  void kill();
  /// No file may grow when the sizes of all files would be more than `bytes`.
  void set_capacity(std::uint64_t bytes);
  /// After `count` more files and folders were opened, opening fails with resource_exhausted.
  /// nullopt: no limit.
  void set_opens_left(std::optional<std::uint64_t> count);
  /// The bytes taken by all files.
  [[nodiscard]] std::uint64_t bytes_used() const;
  /// The next write after `count` more of them fails with io_error, having written some of its
  /// sectors (none if the file would have to grow).
  void fail_write_after(std::uint64_t count);
  /// The next sync of a file or folder after `count` more of them fails with io_error, and makes
  /// nothing durable.
  void fail_sync_after(std::uint64_t count);
  /// Damages a file unnoticed, durably.
  void flip_bit(const std::string& path, std::uint64_t bit);
  /// How many file and folder syncs there were.
  [[nodiscard]] std::uint64_t syncs() const;
  /// A hash of all names and bytes, to compare two runs.
  [[nodiscard]] std::uint64_t digest() const;

 private:
  class Handle;
  /// A write, or with no bytes a change of size, that no sync has covered.
  struct Change {
    std::uint64_t offset;
    std::string bytes;
    std::optional<std::uint64_t> size;
  };
  /// The content of a file, whatever its name.
  struct Node {
    std::string content;
    std::string durable;
    std::vector<Change> unsynced;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;
  /// A creation, rename or removal: what these paths name from now on; null for nothing.
  struct NameChange {
    std::string folder;
    Names names;
  };

  void change_names(const std::string& path, Names names);
  Status check_folder_of(const std::string& path) const;
  Status grow(Node& node, std::uint64_t size);
  Status change_size(Node& node, std::uint64_t size);
  Status write(Node& node, std::uint64_t offset, std::string_view bytes);
  void write_some(Node& node, std::uint64_t offset, std::string_view bytes);
  Status sync(Node& node);
  Status spend_sync();
  Status spend_open(const std::string& path);
  void crash_node(Node& node);
  void write_torn(std::string& content, const Change& change);
  void crash_names();
  [[nodiscard]] std::uint64_t used() const;

  mutable std::mutex mutex_;
  Random crashes_;
  Random numbers_;
  std::set<std::string> folders_;
  Names names_;
  Names durable_names_;
  std::vector<NameChange> unsynced_names_;
  // Removed files too: a crash can bring their names back.
  std::vector<std::weak_ptr<Node>> nodes_;
  std::uint64_t life_ = 0;  // Counts crashes and kills; a handle of an earlier life is dead.
  std::uint64_t capacity_;
  std::optional<std::uint64_t> writes_until_failure_;
  std::optional<std::uint64_t> syncs_until_failure_;
  std::optional<std::uint64_t> opens_left_;
  std::uint64_t syncs_ = 0;
};

}  // namespace baton
