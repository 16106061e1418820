#include "sim/fake_disk.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hash.h"

namespace baton {
namespace {

constexpr std::uint64_t kSectorBytes = 512;

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void put(std::string& content, std::uint64_t offset, std::string_view bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size(), '\0');
  content.replace(offset, bytes.size(), bytes);
}

// Calls visit(offset, bytes) for each piece of `bytes` that lies within one sector.
template <class Visit>
void for_each_sector(std::uint64_t offset, std::string_view bytes, Visit visit) {
  while (!bytes.empty()) {
    const std::uint64_t count =
        std::min<std::uint64_t>(bytes.size(), kSectorBytes - offset % kSectorBytes);
    visit(offset, bytes.substr(0, count));
    bytes.remove_prefix(count);
    offset += count;
  }
}

// True when the countdown ends with this call.
bool count_down(std::optional<std::uint64_t>& left) {
  if (!left) return false;
  if (*left > 0) {
    --*left;
    return false;
  }
  left.reset();
  return true;
}

}  // namespace

/// An open file of one life of the machine.
class FakeDisk::Handle final : public File {
 public:
  Handle(FakeDisk& disk, std::shared_ptr<Node> node, std::string path)
      : disk_(disk), node_(std::move(node)), path_(std::move(path)), life_(disk.life_) {}

  Status write_at(std::uint64_t offset, std::string_view bytes) override {
    return alive([&] { return disk_.write(*node_, offset, bytes); });
  }
  Result<std::string> read_at(std::uint64_t offset, std::uint64_t count) const override {
    const std::scoped_lock lock(disk_.mutex_);
    BATON_TRY_STATUS(check_alive());
    if (offset >= node_->content.size()) return std::string();
    return node_->content.substr(offset, count);
  }
  Status sync() override {
    return alive([&] { return disk_.sync(*node_); });
  }
  Status allocate(std::uint64_t size) override {
    return alive([&] { return disk_.grow(*node_, size); });
  }
  Status truncate(std::uint64_t size) override {
    return alive([&] { return disk_.change_size(*node_, size); });
  }
  Result<std::uint64_t> size() const override {
    const std::scoped_lock lock(disk_.mutex_);
    BATON_TRY_STATUS(check_alive());
    return node_->content.size();
  }

 private:
  [[nodiscard]] Status check_alive() const {
    if (life_ == disk_.life_) return {};
    return Error{Errc::io_error, fmt::format("{}: opened before the crash", path_)};
  }

  // Does `action` under the disk's lock, if the handle still counts; adds the path to its error.
  template <class Action>
  Status alive(Action action) {
    const std::scoped_lock lock(disk_.mutex_);
    BATON_TRY_STATUS(check_alive());
    Status status = action();
    if (!status) status.error().text = fmt::format("{}: {}", path_, status.error().text);
    return status;
  }

  FakeDisk& disk_;
  std::shared_ptr<Node> node_;
  std::string path_;
  std::uint64_t life_;
};

FakeDisk::FakeDisk(std::uint64_t seed)
    : crashes_(Random(seed).fork("crashes")),
      numbers_(Random(seed).fork("numbers")),
      folders_{".", "/"},
      capacity_(std::numeric_limits<std::uint64_t>::max()) {}

Result<std::unique_ptr<File>> FakeDisk::open(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  const auto found = names_.find(path);
  if (found == names_.end()) return Error{Errc::not_found, fmt::format("{}: no such file", path)};
  BATON_TRY_STATUS(spend_open(path));
  return std::unique_ptr<File>(std::make_unique<Handle>(*this, found->second, path));
}

Result<std::unique_ptr<File>> FakeDisk::create(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  BATON_TRY_STATUS(check_folder_of(path));
  BATON_TRY_STATUS(spend_open(path));
  const auto found = names_.find(path);
  if (found != names_.end()) {
    BATON_TRY_STATUS(change_size(*found->second, 0));
    return std::unique_ptr<File>(std::make_unique<Handle>(*this, found->second, path));
  }
  auto node = std::make_shared<Node>();
  nodes_.push_back(node);
  change_names(path, {{path, node}});
  return std::unique_ptr<File>(std::make_unique<Handle>(*this, node, path));
}

Result<std::vector<std::string>> FakeDisk::list(const std::string& folder) const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [path, node] : names_) {
    if (folder_of(path) == folder) names.push_back(path.substr(path.find_last_of('/') + 1));
  }
  return names;
}

Status FakeDisk::make_folder(const std::string& folder) {
  const std::scoped_lock lock(mutex_);
  if (names_.contains(folder))
    return Error{Errc::already_exists, fmt::format("{} is a file", folder)};
  BATON_TRY_STATUS(check_folder_of(folder));
  folders_.insert(folder);
  return {};
}

Status FakeDisk::rename(const std::string& from, const std::string& to) {
  const std::scoped_lock lock(mutex_);
  BATON_ASSERT(folder_of(from) == folder_of(to));
  const auto found = names_.find(from);
  if (found == names_.end()) return Error{Errc::not_found, fmt::format("{}: no such file", from)};
  change_names(from, {{from, nullptr}, {to, found->second}});
  return {};
}

Status FakeDisk::remove(const std::string& path) {
  const std::scoped_lock lock(mutex_);
  if (!names_.contains(path)) return Error{Errc::not_found, fmt::format("{}: no such file", path)};
  change_names(path, {{path, nullptr}});
  return {};
}

Status FakeDisk::sync_folder(const std::string& folder) {
  const std::scoped_lock lock(mutex_);
  if (!folders_.contains(folder))
    return Error{Errc::not_found, fmt::format("{}: no such folder", folder)};
  BATON_TRY_STATUS(spend_open(folder));
  BATON_TRY_STATUS(spend_sync());
  for (const NameChange& change : unsynced_names_) {
    if (change.folder != folder) continue;
    for (const auto& [path, node] : change.names) durable_names_[path] = node;
  }
  std::erase_if(durable_names_, [](const auto& entry) { return entry.second == nullptr; });
  std::erase_if(unsynced_names_, [&](const NameChange& change) { return change.folder == folder; });
  return {};
}

Status FakeDisk::spend_open(const std::string& path) {
  if (!opens_left_) return {};
  if (*opens_left_ == 0) {
    return Error{Errc::resource_exhausted, fmt::format("{}: Too many open files", path)};
  }
  --*opens_left_;
  return {};
}

Result<std::uint64_t> FakeDisk::free_bytes(const std::string& /*folder*/) const {
  const std::scoped_lock lock(mutex_);
  return capacity_ - std::min(capacity_, used());
}

Result<std::uint64_t> FakeDisk::random_number() {
  const std::scoped_lock lock(mutex_);
  return numbers_.next();
}

void FakeDisk::change_names(const std::string& path, Names names) {
  for (const auto& [name, node] : names) names_[name] = node;
  std::erase_if(names_, [](const auto& entry) { return entry.second == nullptr; });
  unsynced_names_.push_back({folder_of(path), std::move(names)});
}

Status FakeDisk::check_folder_of(const std::string& path) const {
  const std::string folder = folder_of(path);
  if (folders_.contains(folder)) return {};
  return Error{Errc::not_found, fmt::format("{}: there is no folder {}", path, folder)};
}

std::uint64_t FakeDisk::used() const {
  std::uint64_t bytes = 0;
  for (const auto& [path, node] : names_) bytes += node->content.size();
  return bytes;
}

Status FakeDisk::grow(Node& node, std::uint64_t size) {
  if (size <= node.content.size()) return {};
  const std::uint64_t more = size - node.content.size();
  if (used() > capacity_ || more > capacity_ - used()) {
    return Error{Errc::disk_full, fmt::format("no room for {} more bytes", more)};
  }
  return change_size(node, size);
}

Status FakeDisk::change_size(Node& node, std::uint64_t size) {
  node.content.resize(size, '\0');
  node.unsynced.push_back({.offset = 0, .bytes = {}, .size = size});
  return {};
}

Status FakeDisk::write(Node& node, std::uint64_t offset, std::string_view bytes) {
  if (count_down(writes_until_failure_)) {
    if (offset + bytes.size() <= node.content.size()) write_some(node, offset, bytes);
    return Error{Errc::io_error, "a planted write failure"};
  }
  BATON_TRY_STATUS(grow(node, offset + bytes.size()));
  put(node.content, offset, bytes);
  node.unsynced.push_back({.offset = offset, .bytes = std::string(bytes), .size = {}});
  return {};
}

void FakeDisk::write_some(Node& node, std::uint64_t offset, std::string_view bytes) {
  for_each_sector(offset, bytes, [&](std::uint64_t at, std::string_view sector) {
    if (!crashes_.chance(1, 2)) return;
    put(node.content, at, sector);
    node.unsynced.push_back({.offset = at, .bytes = std::string(sector), .size = {}});
  });
}

Status FakeDisk::sync(Node& node) {
  BATON_TRY_STATUS(spend_sync());
  for (const Change& change : node.unsynced) {
    if (change.size) node.durable.resize(*change.size, '\0');
    put(node.durable, change.offset, change.bytes);
  }
  node.unsynced.clear();
  BATON_ASSERT(node.durable.size() == node.content.size());
  return {};
}

Status FakeDisk::spend_sync() {
  ++syncs_;
  if (count_down(syncs_until_failure_)) return Error{Errc::io_error, "a planted sync failure"};
  return {};
}

void FakeDisk::crash() {
  const std::scoped_lock lock(mutex_);
  ++life_;
  std::erase_if(nodes_, [](const auto& node) { return node.expired(); });
  for (const auto& node : nodes_) crash_node(*node.lock());
  crash_names();
}

void FakeDisk::kill() {
  const std::scoped_lock lock(mutex_);
  ++life_;
}

void FakeDisk::crash_node(Node& node) {
  for (const Change& change : node.unsynced) {
    enum class Fate : std::uint8_t { kept, lost, torn };
    const auto fate = static_cast<Fate>(crashes_.below(3));
    if (fate == Fate::lost) continue;
    if (change.size) {
      node.durable.resize(*change.size, '\0');
    } else if (fate == Fate::kept) {
      put(node.durable, change.offset, change.bytes);
    } else {
      write_torn(node.durable, change);
    }
  }
  node.unsynced.clear();
  node.content = node.durable;
}

void FakeDisk::write_torn(std::string& content, const Change& change) {
  for_each_sector(change.offset, change.bytes, [&](std::uint64_t offset, std::string_view bytes) {
    if (crashes_.chance(1, 2)) put(content, offset, bytes);
  });
}

void FakeDisk::crash_names() {
  std::set<std::string> lost;
  for (const NameChange& change : unsynced_names_) {
    const bool depends = std::ranges::any_of(
        change.names, [&](const auto& entry) { return lost.contains(entry.first); });
    const bool kept = !depends && crashes_.chance(1, 2);
    for (const auto& [path, node] : change.names) {
      if (kept) durable_names_[path] = node;
      if (!kept) lost.insert(path);
    }
  }
  std::erase_if(durable_names_, [](const auto& entry) { return entry.second == nullptr; });
  unsynced_names_.clear();
  names_ = durable_names_;
}

void FakeDisk::set_capacity(std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  capacity_ = bytes;
}

void FakeDisk::set_opens_left(std::optional<std::uint64_t> count) {
  const std::scoped_lock lock(mutex_);
  opens_left_ = count;
}

std::uint64_t FakeDisk::bytes_used() const {
  const std::scoped_lock lock(mutex_);
  return used();
}

void FakeDisk::fail_write_after(std::uint64_t count) {
  const std::scoped_lock lock(mutex_);
  writes_until_failure_ = count;
}

void FakeDisk::fail_sync_after(std::uint64_t count) {
  const std::scoped_lock lock(mutex_);
  syncs_until_failure_ = count;
}

void FakeDisk::flip_bit(const std::string& path, std::uint64_t bit) {
  const std::scoped_lock lock(mutex_);
  const auto found = names_.find(path);
  BATON_ASSERT(found != names_.end());
  Node& node = *found->second;
  BATON_ASSERT(node.unsynced.empty() && bit / 8 < node.content.size());
  const auto mask = static_cast<char>(1U << (bit % 8));
  node.content[bit / 8] = static_cast<char>(node.content[bit / 8] ^ mask);
  node.durable[bit / 8] = node.content[bit / 8];
}

std::uint64_t FakeDisk::syncs() const {
  const std::scoped_lock lock(mutex_);
  return syncs_;
}

std::uint64_t FakeDisk::digest() const {
  const std::scoped_lock lock(mutex_);
  std::string all;
  for (const auto& [path, node] : names_) {
    const std::uint64_t hash = hash64(node->content);
    all.append(path).append(reinterpret_cast<const char*>(&hash), sizeof hash);  // NOLINT
  }
  return hash64(all);
}

}  // namespace baton
