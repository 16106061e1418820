#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton {

/// One open file. write_at and sync may run at the same time from two threads.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  /// Writes all of `bytes` at `offset`, or fails. Durable only after sync().
  virtual Status write_at(std::uint64_t offset, std::string_view bytes) = 0;
  /// Reads up to `count` bytes; fewer only at the end of the file.
  virtual Result<std::string> read_at(std::uint64_t offset, std::uint64_t count) const = 0;
  /// Makes everything written before the call survive a power loss.
  virtual Status sync() = 0;
  /// Sets aside disk space for `size` bytes, so that later writes below it cannot run out of disk.
  virtual Status allocate(std::uint64_t size) = 0;
  virtual Status truncate(std::uint64_t size) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() const = 0;
};

/// The one interface to the operating system's files: the real disk, or a fake that forgets, tears
/// and fills up. Paths are plain strings; folders end without a slash. A disk without room fails
/// with disk_full, a process or machine with too many open files with resource_exhausted; every
/// error names the path. Thread-safe.
class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  /// Fails with not_found when there is no such file.
  virtual Result<std::unique_ptr<File>> open(const std::string& path) = 0;
  /// Creates the file, or empties it if it exists.
  virtual Result<std::unique_ptr<File>> create(const std::string& path) = 0;
  /// The names (not paths) of the files in `folder`, sorted; an absent folder has none.
  virtual Result<std::vector<std::string>> list(const std::string& folder) const = 0;
  /// Succeeds if the folder exists already; its parent must exist.
  virtual Status make_folder(const std::string& folder) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  /// Makes creations, renames and removals in `folder` survive a power loss.
  virtual Status sync_folder(const std::string& folder) = 0;
  /// How many more bytes files in `folder` could take.
  [[nodiscard]] virtual Result<std::uint64_t> free_bytes(const std::string& folder) const = 0;
  /// A number that nobody can guess and that was not given before, not even before a crash. Comes
  /// from the disk, so that a simulated disk draws it from its seed.
  virtual Result<std::uint64_t> random_number() = 0;
};

/// The machine's own files.
std::unique_ptr<Disk> make_real_disk();

}  // namespace baton
