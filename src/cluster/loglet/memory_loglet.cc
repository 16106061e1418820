#include "cluster/loglet/memory_loglet.h"

#include <algorithm>

namespace baton::loglet {
namespace {

// As a batch of an engine has them.
constexpr std::size_t kReadEntriesMax = 64;
constexpr std::size_t kReadBytesMax = std::size_t{8} << 20U;

}  // namespace

void MemoryLog::ask(const std::shared_ptr<std::vector<Loglet::Answer>>& client,
                    const Request& request) {
  if (down_ || random_.chance(faults_.request_lost, 100)) return;
  on_their_way_.push_back({.client = client, .request = request});
  if (random_.chance(faults_.request_twice, 100)) on_their_way_.push_back(on_their_way_.back());
}

bool MemoryLog::arrive() {
  if (on_their_way_.empty()) return false;
  std::size_t place = 0;
  if (random_.chance(faults_.reordered, 100)) place = random_.below(on_their_way_.size());
  const Message message = on_their_way_[place];
  on_their_way_.erase(on_their_way_.begin() + static_cast<std::ptrdiff_t>(place));
  if (message.request.has_value()) {
    Loglet::Answer answer = serve(*message.request);
    if (!random_.chance(faults_.answer_lost, 100)) {
      on_their_way_.push_back({.client = message.client, .answer = std::move(answer)});
    }
  } else if (const auto client = message.client.lock()) {
    client->push_back(message.answer);
  }
  return true;
}

Loglet::Answer MemoryLog::serve(const Request& request) {
  switch (request.kind) {
    case Request::Kind::append: return store(request);
    case Request::Kind::read: return read(request);
    case Request::Kind::trim: break;
  }
  first_ = std::clamp<std::uint64_t>(request.sequence.value_or(0), first_, entries_.size() + 1);
  return {.kind = Loglet::Answer::Kind::trimmed, .request = request.number};
}

Loglet::Answer MemoryLog::store(const Request& request) {
  using enum Loglet::Answer::Kind;
  Loglet::Answer answer{.kind = refused, .request = request.number};
  if (faults_.full) {
    return {.kind = unable,
            .request = request.number,
            .error = Error{Errc::disk_full, "the engine's disk is full"}};
  }
  const bool is_unable = random_.chance(faults_.unable, 100);
  const bool fits =
      !faults_.conditional || !request.sequence.has_value() || *request.sequence == entries_.size();
  if (fits && !(is_unable && random_.chance(1, 2))) {
    entries_.push_back(request.bytes);
    answer.kind = stored;
    answer.sequence = entries_.size();
  }
  if (is_unable) {
    answer = {.kind = unable,
              .request = request.number,
              .error = Error{Errc::unavailable, "the engine has no leader"}};
  }
  return answer;
}

Loglet::Answer MemoryLog::read(const Request& request) {
  Loglet::Answer answer{.kind = Loglet::Answer::Kind::entries, .request = request.number};
  std::uint64_t sequence = std::max(request.sequence.value_or(0) + 1, first_);
  std::uint64_t end = entries_.size() + 1;
  if (sequence < end && random_.chance(faults_.read_short, 100)) {
    end = sequence + random_.below(end - sequence + 1);
  }
  std::size_t bytes = 0;
  for (; sequence < end && answer.entries.size() < kReadEntriesMax; ++sequence) {
    std::string entry = entries_[sequence - 1];
    bytes += entry.size();
    if (bytes > kReadBytesMax && !answer.entries.empty()) break;
    if (random_.chance(faults_.read_damaged, 100)) entry.back() = static_cast<char>(~entry.back());
    answer.entries.push_back({.sequence = sequence, .bytes = std::move(entry)});
  }
  return answer;
}

void MemoryLoglet::append(std::uint64_t request, std::string_view bytes,
                          std::optional<std::uint64_t> expected) {
  log_.ask(answers_, {.kind = MemoryLog::Request::Kind::append,
                      .number = request,
                      .bytes = std::string(bytes),
                      .sequence = expected});
}

void MemoryLoglet::read(std::uint64_t request, std::uint64_t after) {
  log_.ask(answers_,
           {.kind = MemoryLog::Request::Kind::read, .number = request, .sequence = after});
}

void MemoryLoglet::trim(std::uint64_t request, std::uint64_t before) {
  log_.ask(answers_,
           {.kind = MemoryLog::Request::Kind::trim, .number = request, .sequence = before});
}

void MemoryLoglet::redial() {
  ++redials_;
  answers_ = std::make_shared<std::vector<Answer>>();
  answers_->push_back({.kind = Answer::Kind::connected});
}

}  // namespace baton::loglet
