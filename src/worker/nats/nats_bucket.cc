#include "worker/nats/nats_bucket.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "worker/nats/nats_version.h"
#include "worker/stores/checked_store.h"
#include "worker/stores/limits.h"

namespace baton::coord {
namespace {

using nlohmann::json;

constexpr int kNoPeers = 10'005;  // Also while a cluster's members are still finding each other.
constexpr int kStreamExists = 10'058;
constexpr int kStreamNotFound = 10'059;
// How long the trace of a key that ran out of its time stays, for watches that come back late.
constexpr std::chrono::nanoseconds kMarkerTtl = std::chrono::hours{1};
constexpr std::chrono::seconds kVersionTimeout{1};

/// The code of the error in an answer; 0: it is none.
int error_code(const json& answer) {
  const auto error = answer.find("error");
  if (error == answer.end() || !error->is_object()) return 0;
  return std::max(1, error->value("err_code", 1));
}

Error answered_error(const json& answer, std::string_view doing) {
  return {Errc::failed_precondition,
          fmt::format("{}: {} (JetStream error {})", doing,
                      answer["error"].value("description", "it failed"), error_code(answer))};
}

/// What we make. A leader answers every read (no allow_direct), and fields that an old server does
/// not know, those of the time-to-live, it leaves alone.
json stream_config(const NatsBucket& bucket, std::uint32_t replicas) {
  return {{"name", bucket.stream},     {"subjects", {bucket.subjects + ">"}},
          {"num_replicas", replicas},  {"max_msgs_per_subject", 1},
          {"storage", "file"},         {"retention", "limits"},
          {"discard", "new"},          {"deny_delete", true},
          {"allow_rollup_hdrs", true}, {"allow_direct", false},
          {"allow_msg_ttl", true},     {"subject_delete_marker_ttl", kMarkerTtl.count()}};
}

/// Refuses `replicas` copies if any server that we can ask is too old for more than one.
Status check_versions(NatsLink& link, std::uint32_t replicas, const Deadline& deadline) {
  if (replicas <= 1) return {};
  bool asked = false;
  for (const std::string& server : link.servers()) {
    const Deadline one(std::min<Duration>(deadline.left(), kVersionTimeout));
    const auto version = ask_nats_version(server, one);
    // A member that is down holds nobody up, as long as one has answered.
    if (!version) continue;
    asked = true;
    if (*version >= kNatsReplicatedMin) continue;
    return Error{
        Errc::failed_precondition,
        fmt::format("the NATS server at {} is version {}, and a bucket with {} replicas needs {}: "
                    "before it, a compare-and-set on such a bucket may have several winners. "
                    "replicas=1 is sound on this version",
                    server, to_string(*version), replicas, to_string(kNatsReplicatedMin))};
  }
  if (asked) return {};
  return Error{Errc::unavailable, "no NATS server says which version it is"};
}

Result<json> find_or_make(NatsLink& link, const NatsBucket& bucket, std::uint32_t replicas,
                          const Deadline& deadline) {
  const std::string info = "$JS.API.STREAM.INFO." + bucket.stream;
  const std::string create = "$JS.API.STREAM.CREATE." + bucket.stream;
  while (true) {
    BATON_TRY(json found, link.api(info, "", deadline));
    if (error_code(found) != kStreamNotFound) return found;
    BATON_TRY_STATUS(check_versions(link, replicas, deadline));
    BATON_TRY(json made, link.api(create, stream_config(bucket, replicas).dump(), deadline));
    // Unless somebody else was faster, with other settings.
    const int code = error_code(made);
    if ((code != kStreamExists && code != kNoPeers) || deadline.has_passed()) return made;
    std::this_thread::sleep_for(limits::kRetryPause);
  }
}

/// What a setting is, or what it is by default: servers leave some of those out.
template <class Value>
std::string shown(const json& config, const char* setting, const Value& by_default) {
  const auto found = config.find(setting);
  return found == config.end() ? json(by_default).dump() : found->dump();
}

/// The first setting by which the bucket would forget or refuse keys behind our back, which ends
/// in two holders of one partition; empty: none.
std::string unfit_setting(const json& config, const NatsBucket& bucket) {
  const auto is = [&config](const char* setting, const json& wanted) {
    const std::string found = shown(config, setting, wanted);
    if (found == wanted.dump()) return std::string();
    return fmt::format("{} is {} and must be {}", setting, found, wanted.dump());
  };
  const std::array settings = {
      is("max_age", 0),
      is("retention", "limits"),
      is("storage", "file"),
      is("no_ack", false),
      is("subjects", json::array({bucket.subjects + ">"})),
  };
  for (const std::string& wrong : settings) {
    if (!wrong.empty()) return wrong;
  }
  for (const char* setting : {"mirror", "sources", "subject_transform"}) {
    const auto found = config.find(setting);
    if (found != config.end() && !found->empty()) {
      return fmt::format("it has a setting {}, and must not", setting);
    }
  }
  for (const char* limit : {"max_msgs", "max_bytes"}) {
    // A full bucket must refuse new keys: by default NATS drops the oldest, even a held lease.
    const std::int64_t most = config.value(limit, std::int64_t{-1});
    if (most > 0 && config.value("discard", "old") != "new") {
      return fmt::format("{} is {}, so that discard must be \"new\", and it is {}", limit, most,
                         shown(config, "discard", "old"));
    }
  }
  return {};
}

Status check_config(const json& config, const StoreUrl& url, const NatsBucket& bucket) {
  const auto refuse = [&url](std::string_view why) {
    return Error{Errc::failed_precondition, fmt::format("bucket {} {}", url.bucket, why)};
  };
  const auto replicas = config.value("num_replicas", 1U);
  if (url.replicas && *url.replicas != replicas) {
    return refuse(fmt::format("has {} replicas, and the URL asks for {}", replicas, *url.replicas));
  }
  const std::string wrong = unfit_setting(config, bucket);
  if (wrong.empty()) return {};
  return refuse(fmt::format("is not fit for leases, which must not be forgotten: {}", wrong));
}

}  // namespace

std::string NatsBucket::filter_of(std::string_view prefix) const {
  const auto dot = prefix.rfind('.');
  const auto whole = dot == std::string_view::npos ? std::string_view{} : prefix.substr(0, dot + 1);
  return fmt::format("{}{}>", subjects, whole);
}

Result<NatsBucket> open_nats_bucket(NatsLink& link, const StoreUrl& url,
                                    const StoreOptions& options, const Deadline& deadline) {
  NatsBucket bucket{.stream = "KV_" + url.bucket, .subjects = fmt::format("$KV.{}.", url.bucket)};
  BATON_TRY(const json info, options.to_read
                                 ? link.api("$JS.API.STREAM.INFO." + bucket.stream, "", deadline)
                                 : find_or_make(link, bucket, url.replicas.value_or(1), deadline));
  if (options.to_read && error_code(info) == kStreamNotFound) return no_bucket(url.bucket);
  if (error_code(info) != 0) {
    return answered_error(info, fmt::format("bucket {} on NATS", url.bucket));
  }
  const json config = info.value("config", json::object());
  BATON_TRY_STATUS(check_config(config, url, bucket));
  BATON_TRY_STATUS(check_versions(link, config.value("num_replicas", 1U), deadline));
  bucket.forgets_by_ttl = config.value("allow_msg_ttl", false);
  return bucket;
}

Result<std::vector<std::string>> list_nats_keys(NatsLink& link, const NatsBucket& bucket,
                                                std::string_view prefix, const Deadline& deadline) {
  std::vector<std::string> keys;
  std::size_t offset = 0;
  while (true) {
    const json request{{"subjects_filter", bucket.filter_of(prefix)}, {"offset", offset}};
    BATON_TRY(const json answer,
              link.api("$JS.API.STREAM.INFO." + bucket.stream, request.dump(), deadline));
    if (error_code(answer) != 0) {
      Error error = answered_error(answer, "the bucket's keys");
      error.code = Errc::unavailable;
      return error;
    }
    const json subjects = answer.value("state", json::object()).value("subjects", json::object());
    for (const auto& [subject, count] : subjects.items()) {
      const std::string_view key =
          std::string_view(subject).substr(std::min(bucket.subjects.size(), subject.size()));
      if (key.starts_with(prefix)) keys.emplace_back(key);
    }
    offset += subjects.size();
    // A page holds 100 000 subjects.
    if (subjects.empty() || offset >= answer.value("total", std::size_t{0})) break;
  }
  std::ranges::sort(keys);
  return keys;
}

}  // namespace baton::coord
