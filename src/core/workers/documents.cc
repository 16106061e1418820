#include "core/workers/documents.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/workers/assignment_text.h"
#include "core/workers/settings.h"

namespace baton::partition {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMillisecondsMax = std::int64_t{1} << 53U;  // Every JSON reader keeps it.

constexpr std::array<std::string_view, 6> kStates = {"active",     "standby", "draining",
                                                     "restarting", "evicted", "gone"};
constexpr std::array<std::string_view, 6> kWhys = {"",      "first",   "rebalance",
                                                   "leave", "evicted", "restart"};

template <class Enum, std::size_t N>
std::optional<Enum> parse(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

/// Reads the fields of one document; remembers the first that is wrong.
class Fields {
 public:
  Fields(std::string_view what, std::string_view text) : what_(what) {
    if (text.size() > kDocumentBytesMax) {
      fail(fmt::format("has {} bytes; the limit is {}", text.size(), kDocumentBytesMax));
      return;
    }
    json_ = Json::parse(text, nullptr, false);
    if (!json_.is_object()) {
      fail("is no JSON object");
      return;
    }
    const std::uint64_t version = number("version", 1, kMillisecondsMax);
    if (error_.empty() && version > kDocumentVersion) {
      fail(fmt::format("has version {}; this program knows up to {}", version, kDocumentVersion));
    }
  }

  std::uint64_t number(const char* name, std::int64_t least, std::int64_t most) {
    const auto found = json_.find(name);
    if (found == json_.end() || !found->is_number_integer()) {
      fail(fmt::format("has no number \"{}\"", name));
      return 0;
    }
    return checked(*found, name, least, most);
  }
  bool flag(const char* name) {
    const auto found = json_.find(name);
    return found != json_.end() && found->is_boolean() && found->get<bool>();
  }
  std::string text(const char* name) {
    const auto found = json_.find(name);
    return found != json_.end() && found->is_string() ? found->get<std::string>() : std::string();
  }
  const Json& list(const char* name) {
    static const Json kEmpty = Json::array();
    const auto found = json_.find(name);
    if (found != json_.end() && found->is_array()) return *found;
    fail(fmt::format("has no list \"{}\"", name));
    return kEmpty;
  }
  std::uint64_t checked(const Json& value, const char* name, std::int64_t least,
                        std::int64_t most) {
    const std::int64_t result = value.is_number_integer() ? value.get<std::int64_t>() : least - 1;
    if (result < least || result > most) {
      fail(fmt::format("\"{}\" must be {} to {}", name, least, most));
      return 0;
    }
    return static_cast<std::uint64_t>(result);
  }

  void fail(std::string text) {
    if (error_.empty()) error_ = std::move(text);
  }
  [[nodiscard]] bool good() const { return error_.empty(); }
  [[nodiscard]] Error error() const {
    return Error{Errc::malformed, fmt::format("the {} document {}", what_, error_)};
  }

 private:
  std::string_view what_;
  Json json_ = Json::object();
  std::string error_;
};

std::vector<SessionId> read_sessions(Fields& fields) {
  std::vector<SessionId> sessions;
  for (const Json& session : fields.list("sessions")) {
    if (!session.is_string()) fields.fail("\"sessions\" must be texts");
    sessions.push_back(session.is_string() ? session.get<std::string>() : std::string());
    if (!is_session_id(sessions.back())) fields.fail("\"sessions\" must be worker.incarnation");
  }
  return sessions;
}

SessionId read_place(Fields& fields, const Json& place, const std::vector<SessionId>& sessions) {
  const auto at = static_cast<std::int64_t>(
      fields.checked(place, "holdings: session", kNobody, std::ssize(sessions) - 1));
  return at == kNobody || !fields.good() ? SessionId() : sessions[static_cast<std::size_t>(at)];
}

Holding read_holding(Fields& fields, const Json& row, const std::vector<SessionId>& sessions) {
  Holding holding;
  if (!row.is_array() || row.size() != 5) {
    fields.fail("\"holdings\" must be lists of 5");
    return holding;
  }
  holding.owner = read_place(fields, row[0], sessions);
  holding.epoch = fields.checked(row[1], "holdings: epoch", 0, kEpochMax);
  holding.next = read_place(fields, row[2], sessions);
  holding.since = WallTime(fields.checked(row[3], "holdings: since", 0, kMillisecondsMax));
  holding.why = static_cast<Why>(fields.checked(row[4], "holdings: why", 0, kWhys.size() - 1));
  return holding;
}

}  // namespace

std::string_view to_string(SessionState state) { return kStates.at(std::to_underlying(state)); }
std::string_view to_string(Why why) { return kWhys.at(std::to_underlying(why)); }

std::string encode(const WorkerSession& session) {
  return Json{{"version", kDocumentVersion},
              {"state", to_string(session.state)},
              {"beat", session.beat},
              {"weight", session.weight},
              {"static", session.static_id},
              {"fenced", session.fenced},
              {"blind", session.blind},
              {"stopped", session.stopped},
              {"lease_ms", session.lease.count()},
              {"grace_ms", session.grace.count()},
              {"since_ms", session.since.count()},
              {"renewed_ms", session.renewed.count()},
              {"host", session.host}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<WorkerSession> decode_session(std::string_view text) {
  Fields fields("session", text);
  WorkerSession session;
  const auto state = parse<SessionState>(kStates, fields.text("state"));
  if (!state.has_value()) fields.fail("has no known \"state\"");
  session.state = state.value_or(SessionState::active);
  session.beat = fields.number("beat", 0, kMillisecondsMax);
  session.weight = static_cast<std::uint32_t>(fields.number("weight", 1, kWeightMax));
  session.static_id = fields.flag("static");
  session.fenced = fields.flag("fenced");
  session.blind = fields.flag("blind");
  session.stopped = fields.flag("stopped");
  const auto milliseconds = [&](const char* name, std::int64_t least, std::int64_t most) {
    return std::chrono::milliseconds(fields.number(name, least, most));
  };
  constexpr std::int64_t kLongest =
      std::chrono::duration_cast<std::chrono::milliseconds>(kTimingMax).count();
  session.lease = milliseconds("lease_ms", 1, kLongest);
  session.grace = milliseconds("grace_ms", 0, kLongest);
  session.since = milliseconds("since_ms", 0, kMillisecondsMax);
  session.renewed = milliseconds("renewed_ms", 0, kMillisecondsMax);
  session.host = fields.text("host");
  if (!fields.good()) return fields.error();
  return session;
}

std::string encode(const Assignment& assignment) { return write_assignment(assignment); }

Result<Assignment> decode_assignment(std::string_view text) {
  if (auto assignment = read_as_written(text)) return *std::move(assignment);
  return decode_assignment_of_any_form(text);
}

Result<Assignment> decode_assignment_of_any_form(std::string_view text) {
  Fields fields("assignment", text);
  Assignment result;
  result.partitions = static_cast<std::uint32_t>(fields.number("partitions", 1, kPartitionsMax));
  result.first = static_cast<std::uint32_t>(fields.number("first", 0, kPartitionsMax));
  const std::vector<SessionId> sessions = read_sessions(fields);
  for (const Json& row : fields.list("holdings")) {
    result.holdings.push_back(read_holding(fields, row, sessions));
    if (!fields.good()) break;
  }
  if (fields.good() && !is_whole(result)) fields.fail("does not hold the partitions that it says");
  if (!fields.good()) return fields.error();
  return result;
}

std::uint32_t chunks_of(std::uint32_t partitions) {
  return (partitions + kChunkPartitions - 1) / kChunkPartitions;
}

std::uint32_t size_of_chunk(std::uint32_t partitions, std::uint32_t chunk) {
  return std::min(kChunkPartitions, partitions - (chunk * kChunkPartitions));
}

}  // namespace baton::partition
