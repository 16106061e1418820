#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/workers/effects.h"

namespace baton::partition {

/// The state of a key-value store, without the network: one revision counter, compare-and-set, and
/// a listener that is called with each change.
class FakeKv {
 public:
  using Listener = std::function<void(const Entry& entry, bool removed)>;

  explicit FakeKv(Listener listener) : listener_(std::move(listener)) {}

  Reply execute(const Request& request) {
    using Kind = Request::Kind;
    using Verdict = Reply::Verdict;
    Reply reply{.verdict = Verdict::done, .revision = 0, .entries = {}, .error = {}};
    const auto found = entries_.find(request.key);
    const Revision current = found == entries_.end() ? 0 : found->second.revision;
    switch (request.kind) {
      case Kind::get:
        if (current != 0) reply.entries.push_back(found->second);
        break;
      case Kind::list: reply.entries = list(request.key); break;
      case Kind::cas:
        if (current != request.expected)
          return {.verdict = Verdict::refused, .entries = {}, .error = {}};
        reply.revision = ++revision_;
        entries_[request.key] = {request.key, request.value, revision_};
        listener_(entries_[request.key], false);
        break;
      case Kind::remove:
        if (current != request.expected)
          return {.verdict = Verdict::refused, .entries = {}, .error = {}};
        entries_.erase(request.key);
        listener_({request.key, "", ++revision_}, true);
        break;
    }
    return reply;
  }

  /// Acts as a server that lost its disk: no keys, and revisions start over. No event is sent.
  void forget_everything() {
    entries_.clear();
    revision_ = 0;
  }

  [[nodiscard]] std::vector<Entry> list(const std::string& prefix) const {
    std::vector<Entry> result;
    for (auto at = entries_.lower_bound(prefix);
         at != entries_.end() && at->first.starts_with(prefix); ++at) {
      result.push_back(at->second);
    }
    return result;
  }

 private:
  Listener listener_;
  std::map<std::string, Entry> entries_;
  Revision revision_ = 0;
};

}  // namespace baton::partition
