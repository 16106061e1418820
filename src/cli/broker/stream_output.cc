#include "cli/broker/stream_output.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/time.h"
#include "cli/base/terminal.h"

namespace baton::cli {
namespace {

using client::Activity;
using client::Connectivity;
using Rows = std::vector<std::vector<std::string>>;

std::string_view connectivity_name(Connectivity value) {
  switch (value) {
    case Connectivity::connected: return "CONNECTIVITY_CONNECTED";
    case Connectivity::disconnected: return "CONNECTIVITY_DISCONNECTED";
    case Connectivity::forgotten: return "CONNECTIVITY_FORGOTTEN";
    default: return "CONNECTIVITY_UNSPECIFIED";
  }
}

std::string_view activity_name(Activity value) {
  switch (value) {
    case Activity::waiting: return "ACTIVITY_WAITING";
    case Activity::active: return "ACTIVITY_ACTIVE";
    case Activity::deactivating: return "ACTIVITY_DEACTIVATING";
    default: return "ACTIVITY_UNSPECIFIED";
  }
}

/// "active", or "disconnected active".
std::string status_text(const client::GroupMember& member) {
  std::string text;
  if (member.connectivity == Connectivity::disconnected) text = "disconnected ";
  if (member.connectivity == Connectivity::forgotten) text = "forgotten ";
  switch (member.activity) {
    case Activity::waiting: return text + "waiting";
    case Activity::active: return text + "active";
    case Activity::deactivating: return text + "stepping down";
    default: return text + "unknown";
  }
}

Json settings_json(const client::StreamSettings& settings) {
  Json out = Json::object();
  if (settings.retention) out["retention_ms"] = settings.retention->count();
  if (settings.retention_bytes) out["retention_bytes"] = *settings.retention_bytes;
  if (settings.segment_bytes) out["segment_bytes"] = *settings.segment_bytes;
  if (settings.fsync) out["fsync"] = *settings.fsync;
  if (settings.batch_bytes_max) out["batch_bytes_max"] = *settings.batch_bytes_max;
  return out;
}

Json partition_json(const client::PartitionInfo& partition) {
  Json out{{"partition", partition.partition.value},
           {"first_offset", partition.first_offset.value},
           {"next_offset", partition.next_offset.value},
           {"bytes", partition.bytes},
           {"segments", partition.segments},
           {"read_only", partition.read_only},
           {"damaged", partition.damaged}};
  out["groups"] = Json::array();
  for (const auto& group : partition.groups) {
    Json entry{{"group", group.group}};
    if (group.offset) entry["offset"] = group.offset->value;
    entry["lag"] = group.lag;
    out["groups"].push_back(std::move(entry));
  }
  return out;
}

Json member_json(const client::GroupMember& member) {
  Json out{{"connection", member.connection},
           {"subscription", member.subscription},
           {"owner", member.owner},
           {"connectivity", connectivity_name(member.connectivity)},
           {"activity", activity_name(member.activity)},
           {"since_ns", member.since.time_since_epoch().count()},
           {"ticket", member.ticket}};
  if (member.lease_left) out["lease_left_ms"] = member.lease_left->count();
  return out;
}

std::string lease_text(const client::GroupMember& member) {
  if (!member.lease_left) return "none";
  return fmt::format("{:.1f} s", static_cast<double>(member.lease_left->count()) / 1000);
}

std::string kind_text(const client::GroupInfo& group) {
  if (!group.single_active) return "not single active";
  return group.handover == client::Handover::strict ? "single active, strict hand-over"
                                                    : "single active";
}

std::string number_text(Offset offset) {
  return offset.value < 0 ? fmt::format("{}", offset.value)
                          : format_count(static_cast<std::uint64_t>(offset.value));
}

std::string retention_text(const client::StreamSettings& settings) {
  const auto age = settings.retention.value_or(std::chrono::milliseconds{0});
  const auto bytes = settings.retention_bytes.value_or(0);
  if (age.count() == 0 && bytes == 0) return "no limit";
  if (bytes == 0) return format_duration(age);
  if (age.count() == 0) return format_bytes(bytes) + " a partition";
  return fmt::format("{} or {} a partition", format_duration(age), format_bytes(bytes));
}

/// The consumer that has the seat.
const client::GroupMember* holder_of(const client::GroupInfo& group) {
  const auto holds = [](const client::GroupMember& member) {
    return member.activity == Activity::active || member.activity == Activity::deactivating;
  };
  const auto found = std::ranges::find_if(group.members, holds);
  return found == group.members.end() ? nullptr : &*found;
}

std::string owner_text(const client::GroupMember& member) {
  if (!member.owner.empty()) return printable(member.owner);
  return fmt::format("{}.{}", member.connection, member.subscription);
}

/// Whether no consumer gets the records of this partition.
bool is_idle(const client::GroupInfo& group) {
  return group.single_active ? holder_of(group) == nullptr : group.members.empty();
}

std::string holder_text(const client::GroupInfo& group) {
  if (is_idle(group)) return group.lag > 0 ? paint(Tone::alarm, "nobody") : "nobody";
  if (!group.single_active) return fmt::format("everybody ({})", group.members.size());
  const client::GroupMember* const holder = holder_of(group);
  return holder->activity == Activity::active ? owner_text(*holder)
                                              : owner_text(*holder) + " (stepping down)";
}

/// What must be noticed: records that wait without a consumer, one line for each group.
std::string alarms(const std::vector<client::GroupInfo>& partitions) {
  std::map<std::pair<std::string, std::string>, std::uint64_t> behind;
  for (const auto& group : partitions) {
    if (is_idle(group)) behind[{group.stream, group.group}] += group.lag;
  }
  std::string out;
  for (const auto& [name, lag] : behind) {
    if (lag == 0) continue;
    const std::string line =
        fmt::format("!! {} / {} has no consumer and is {} behind", printable(name.first),
                    printable(name.second), counted(lag, "record"));
    out += paint(Tone::alarm, line) + "\n";
  }
  return out;
}

std::string waiting_text(const client::GroupInfo& group) {
  const auto waiting =
      std::ranges::count(group.members, Activity::waiting, &client::GroupMember::activity);
  return fmt::format("{}", waiting);
}

}  // namespace

std::string offset_text(const std::optional<Offset>& offset) {
  return offset ? number_text(*offset) : "none";
}

std::string format_time(client::BrokerTime time) {
  if (time == client::BrokerTime{}) return "-";
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(time - seconds).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), milliseconds);
}

std::string format_hand_over(std::chrono::microseconds time) {
  if (time.count() == 0) return "-";
  if (time < std::chrono::milliseconds{1}) return fmt::format("{} us", time.count());
  const double milliseconds = static_cast<double>(time.count()) / 1000;
  return time < std::chrono::seconds{1} ? fmt::format("{:.1f} ms", milliseconds)
                                        : fmt::format("{:.1f} s", milliseconds / 1000);
}

Json to_json(const client::StreamInfo& stream) {
  Json out{{"name", stream.name},
           {"id", stream.id},
           {"partitions", stream.partitions},
           {"settings", settings_json(stream.settings)},
           {"created_at_ns", stream.created_at.time_since_epoch().count()}};
  out["details"] = Json::array();
  for (const auto& partition : stream.details) out["details"].push_back(partition_json(partition));
  return out;
}

Json to_json(const client::AppendResult& result) {
  Json out{{"partition", result.partition.value},
           {"offset", result.offset.value},
           {"duplicate", result.duplicate}};
  if (result.error) out["error"] = to_json(*result.error);
  return out;
}

Json to_json(const client::Record& record) {
  Json out{{"partition", record.partition.value},
           {"offset", record.offset.value},
           {"timestamp_ms", record.timestamp.time_since_epoch().count()}};
  if (record.key) put_bytes(out, "key", *record.key);
  if (record.value) put_bytes(out, "value", *record.value);
  out["headers"] = Json::array();
  for (const client::RecordHeader& header : record.headers) {
    Json entry{{"name", header.name}};
    if (header.value) put_bytes(entry, "value", *header.value);
    out["headers"].push_back(std::move(entry));
  }
  return out;
}

Json to_json(const client::GroupInfo& group) {
  Json out{{"stream", group.stream},
           {"partition", group.partition.value},
           {"group", group.group},
           {"single_active", group.single_active},
           {"generation", group.generation}};
  if (group.single_active) {
    out["handover"] = group.handover == client::Handover::strict ? "strict" : "at-once";
  }
  if (group.offset) out["offset"] = group.offset->value;
  out["lag"] = group.lag;
  out["members"] = Json::array();
  for (const auto& member : group.members) out["members"].push_back(member_json(member));
  out["reason"] = group.reason;
  out["changed_at_ns"] = group.changed_at.time_since_epoch().count();
  out["last_hand_over_us"] = group.last_hand_over.count();
  return out;
}

std::uint64_t records_of(const client::StreamInfo& stream) {
  std::uint64_t records = 0;
  for (const auto& partition : stream.details) {
    records +=
        static_cast<std::uint64_t>(partition.next_offset.value - partition.first_offset.value);
  }
  return records;
}

std::string list_text(const std::vector<client::StreamInfo>& streams) {
  if (streams.empty()) return "no streams";
  Rows rows{{"NAME", "PARTITIONS", "RECORDS", "BYTES", "RETENTION"}};
  for (const auto& stream : streams) {
    std::uint64_t bytes = 0;
    for (const auto& partition : stream.details) bytes += partition.bytes;
    rows.push_back({stream.name, format_count(stream.partitions), format_count(records_of(stream)),
                    format_bytes(bytes), retention_text(stream.settings)});
  }
  return format_table(rows);
}

std::string describe(const client::StreamInfo& stream) {
  std::string out = fmt::format("{}  (id {})\n", stream.name, stream.id);
  const auto line = [&out](std::string_view name, std::string_view value) {
    out += fmt::format("  {:<16}{}\n", name, value);
  };
  line("partitions", format_count(stream.partitions));
  line("retention", retention_text(stream.settings));
  line("segment size", format_bytes(stream.settings.segment_bytes.value_or(0)));
  line("fsync", stream.settings.fsync.value_or("always"));
  line("batch max", format_bytes(stream.settings.batch_bytes_max.value_or(0)));
  line("created", format_time(stream.created_at));
  Rows rows{{"PARTITION", "FIRST", "NEXT", "BYTES", "SEGMENTS"}};
  Rows groups{{"PARTITION", "GROUP", "OFFSET", "LAG"}};
  std::string damage;
  for (const auto& partition : stream.details) {
    const std::string number = fmt::format("{}", partition.partition.value);
    rows.push_back({number, number_text(partition.first_offset), number_text(partition.next_offset),
                    format_bytes(partition.bytes), format_count(partition.segments)});
    for (const auto& group : partition.groups) {
      groups.push_back(
          {number, printable(group.group), offset_text(group.offset), format_count(group.lag)});
    }
    if (!partition.read_only.empty()) {
      damage += fmt::format("\npartition {} is read-only: {}", number, partition.read_only);
    }
    if (!partition.damaged.empty()) {
      damage += fmt::format("\npartition {} has damaged records: {}", number, partition.damaged);
    }
  }
  out += format_table(rows);
  if (groups.size() > 1) out += "\n" + format_table(groups);
  return out + damage;
}

std::string describe(const client::Record& record) {
  std::string out = fmt::format("{}@{}  {}", record.partition.value, record.offset.value,
                                format_time(record.timestamp));
  if (record.key) {
    out += is_utf8(*record.key) ? "  key " + printable(*record.key)
                                : fmt::format("  key of {} bytes", record.key->size());
  }
  if (!record.value) return out + "  no value";
  out += fmt::format("  {} byte{}", record.value->size(), record.value->size() == 1 ? "" : "s");
  for (const client::RecordHeader& header : record.headers) {
    out += fmt::format("\n  {}: {}", printable(header.name), printable(header.value.value_or("")));
  }
  return out + describe_payload(*record.value);
}

std::string list_text(const std::vector<client::GroupInfo>& groups) {
  if (groups.empty()) return "no groups";
  Rows rows{{"STREAM", "GROUP", "PARTITION", "ACTIVE", "WAITING", "OFFSET", "LAG"}};
  for (const auto& group : groups) {
    rows.push_back({printable(group.stream), printable(group.group),
                    fmt::format("{}", group.partition.value), holder_text(group),
                    waiting_text(group), offset_text(group.offset), format_count(group.lag)});
  }
  return alarms(groups) + format_table(rows);
}

std::string describe(const std::vector<client::GroupInfo>& partitions) {
  if (partitions.empty()) return "nobody, and no offsets";
  std::string out = fmt::format("{} / {}  {}\n", printable(partitions[0].stream),
                                printable(partitions[0].group), kind_text(partitions[0]));
  out += alarms(partitions);
  Rows seats{{"PARTITION", "ACTIVE", "SINCE", "EPOCH", "OFFSET", "LAG", "HAND-OVER", "WHY"}};
  Rows members{{"PARTITION", "OWNER", "STATUS", "LEASE", "CONNECTION", "TICKET", "SINCE"}};
  for (const auto& group : partitions) {
    const client::GroupMember* const holder = holder_of(group);
    const std::string number = fmt::format("{}", group.partition.value);
    seats.push_back({number, holder_text(group),
                     holder == nullptr ? format_time(group.changed_at) : format_time(holder->since),
                     fmt::format("{}", group.generation), offset_text(group.offset),
                     format_count(group.lag), format_hand_over(group.last_hand_over),
                     group.reason.empty() ? "-" : printable(group.reason)});
    for (const auto& member : group.members) {
      members.push_back({number, owner_text(member), status_text(member), lease_text(member),
                         fmt::format("{}.{}", member.connection, member.subscription),
                         fmt::format("{}", member.ticket), format_time(member.since)});
    }
  }
  out += format_table(seats);
  if (members.size() > 1) out += "\n" + format_table(members);
  return out;
}

}  // namespace baton::cli
