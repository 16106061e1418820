#include "cluster/loglet_nats/log_stream.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace baton::loglet {
namespace {

using nlohmann::json;

constexpr int kNoPeers = 10'005;  // Also while a cluster's members are still finding each other.
constexpr int kNameInUse = 10'058;
constexpr int kStreamNotFound = 10'059;
constexpr std::chrono::seconds kVersionTimeout{1};
constexpr std::chrono::milliseconds kCreatePause{200};
constexpr const char* kClusterId = "baton-cluster-id";

// The first fit version of each line; lines between them have none.
constexpr std::array kFitVersions{coord::NatsVersion{2, 12, 15}, coord::NatsVersion{2, 14, 9},
                                  coord::NatsVersion{2, 15, 2}};

/// The code of the error in an answer; 0: it is none.
int code_of(const json& answer) {
  const auto error = answer.find("error");
  if (error == answer.end() || !error->is_object()) return 0;
  return std::max(1, error->value("err_code", 1));
}

Error error_of(const json& answer, std::string_view stream) {
  return {Errc::failed_precondition,
          fmt::format("stream {}: {} (JetStream error {})", stream,
                      answer["error"].value("description", "it failed"), code_of(answer))};
}

json config_of(const LogName& name, std::uint32_t replicas) {
  const std::string stream = log_stream(name);
  return {{"name", stream},
          {"subjects", {log_subject(stream)}},
          {"num_replicas", replicas},
          {"storage", "file"},
          {"retention", "limits"},
          {"discard", "new"},
          {"max_msgs", -1},
          {"max_bytes", -1},
          {"max_age", 0},
          {"max_msg_size", -1},
          {"deny_delete", true},
          {"allow_direct", true},
          {"metadata", {{kClusterId, name.cluster_id}}}};
}

/// The settings that must be as we make them; what a server leaves out is the default.
std::string unfit_setting_of(const json& config, const LogName& name) {
  const std::array<std::pair<const char*, json>, 14> wanted{{
      {"subjects", json::array({log_subject(log_stream(name))})},
      {"storage", "file"},
      {"retention", "limits"},
      {"discard", "new"},
      {"max_msgs", -1},
      {"max_bytes", -1},
      {"max_age", 0},
      {"max_msgs_per_subject", -1},
      {"max_msg_size", -1},
      {"no_ack", false},
      {"deny_delete", true},
      {"allow_direct", true},
      {"allow_rollup_hdrs", false},
      {"sealed", false},
  }};
  const std::array<std::pair<const char*, json>, 3> defaults{
      {{"discard", "old"}, {"deny_delete", false}, {"allow_direct", false}}};
  for (const auto& [setting, value] : wanted) {
    json found = value;
    for (const auto& [other, by_default] : defaults) {
      if (std::string_view(other) == setting) found = by_default;
    }
    found = config.value(setting, found);
    if (found != value) {
      return fmt::format("{} is {} and must be {}", setting, found.dump(), value.dump());
    }
  }
  for (const char* const setting : {"mirror", "sources", "subject_transform", "republish"}) {
    const auto found = config.find(setting);
    if (found != config.end() && !found->empty()) {
      return fmt::format("it has a setting {}, and must not", setting);
    }
  }
  return {};
}

Status check_config_of(const json& config, const LogName& name) {
  const std::string stream = log_stream(name);
  const json metadata = config.value("metadata", json::object());
  if (metadata.value(kClusterId, "") != name.cluster_id) {
    return Error{Errc::failed_precondition,
                 fmt::format("stream {} belongs to another cluster of that name, which was made "
                             "earlier or by something else; remove the stream if nobody needs it",
                             stream)};
  }
  const std::string wrong = unfit_setting_of(config, name);
  if (wrong.empty()) return {};
  return Error{Errc::failed_precondition,
               fmt::format("stream {} is not fit for a shard's log: {}", stream, wrong)};
}

}  // namespace

std::string log_stream(const LogName& name) {
  return fmt::format("BATON_{}_{}_{}", name.cluster, name.shard, name.generation);
}

std::string log_subject(std::string_view stream) { return fmt::format("{}.log", stream); }

bool is_fit_for_logs(const coord::NatsVersion& version) {
  // A later line is fit as a whole; within a line, from its first fit version on.
  const auto same_line = [&](const coord::NatsVersion& one) {
    return one.major == version.major && one.minor == version.minor;
  };
  const auto* const line = std::ranges::find_if(kFitVersions, same_line);
  return line != kFitVersions.end() ? version >= *line : version > kFitVersions.back();
}

Status check_log_versions(coord::NatsLink& link, const coord::Deadline& deadline) {
  bool asked = false;
  for (const std::string& server : link.servers()) {
    const coord::Deadline one(std::min<Duration>(deadline.left(), kVersionTimeout));
    const auto version = coord::ask_nats_version(server, one);
    if (!version) continue;
    asked = true;
    if (is_fit_for_logs(*version)) continue;
    return Error{Errc::failed_precondition,
                 fmt::format("the NATS server at {} is version {}; a cluster's log needs 2.12.15, "
                             "2.14.9, 2.15.2 or newer: older ones can refuse good entries for ever",
                             server, coord::to_string(*version))};
  }
  if (asked) return {};
  return Error{Errc::unavailable, "no NATS server says which version it is"};
}

Status create_log_stream(coord::NatsLink& link, const LogName& name, std::uint32_t replicas,
                         const coord::Deadline& deadline) {
  const std::string stream = log_stream(name);
  const std::string body = config_of(name, replicas).dump();
  while (true) {
    BATON_TRY(const json made, link.api("$JS.API.STREAM.CREATE." + stream, body, deadline));
    const int code = code_of(made);
    if (code == 0) return check_config_of(made.value("config", json::object()), name);
    if (code == kNameInUse) return check_log_stream(link, name, deadline);
    if (code != kNoPeers || deadline.has_passed()) return error_of(made, stream);
    std::this_thread::sleep_for(kCreatePause);
  }
}

Status check_log_stream(coord::NatsLink& link, const LogName& name,
                        const coord::Deadline& deadline) {
  const std::string stream = log_stream(name);
  BATON_TRY(const json found, link.api("$JS.API.STREAM.INFO." + stream, "", deadline));
  if (code_of(found) == kStreamNotFound) {
    return Error{Errc::not_found,
                 fmt::format("the log of shard {} is gone: there is no stream {}; it is not made "
                             "anew, because its entries may exist somewhere",
                             name.shard, stream)};
  }
  if (code_of(found) != 0) return error_of(found, stream);
  return check_config_of(found.value("config", json::object()), name);
}

}  // namespace baton::loglet
