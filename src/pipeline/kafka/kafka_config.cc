#include "pipeline/kafka/kafka_config.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

constexpr std::string_view kBrokers = "bootstrap.servers";
constexpr std::string_view kBrokersAlias = "metadata.broker.list";
constexpr std::string_view kMechanism = "sasl.mechanism";
constexpr std::string_view kMechanismAlias = "sasl.mechanisms";

Status set(rd_kafka_conf_t& conf, const std::string& name, const std::string& value) {
  std::array<char, 512> why{};
  const rd_kafka_conf_res_t set =
      rd_kafka_conf_set(&conf, name.c_str(), value.c_str(), why.data(), why.size());
  if (set == RD_KAFKA_CONF_OK) return {};
  return Error{Errc::invalid_argument, fmt::format("Kafka's property {}: {}", name, why.data())};
}

Status set_all(rd_kafka_conf_t& conf, const KafkaProperties& properties) {
  for (const auto& [name, value] : properties) BATON_TRY_STATUS(set(conf, name, value));
  return {};
}

Status refuse_fixed(const KafkaConfParts& parts) {
  for (const auto& [name, value] : parts.wanted) {
    const std::string_view meant = name == kBrokersAlias     ? kBrokers
                                   : name == kMechanismAlias ? kMechanism
                                                             : std::string_view(name);
    const bool fixed =
        std::ranges::any_of(parts.fixed, [&](const auto& one) { return one.first == meant; });
    if (fixed) {
      return Error{
          Errc::invalid_argument,
          fmt::format("Kafka's property {} cannot be set: a pipeline's promises depend on it, or "
                      "it follows from another setting",
                      name)};
    }
  }
  return {};
}

}  // namespace

Result<KafkaProperties> security_properties(const client::SecurityOptions& security) {
  if (!security.token.empty() || !security.credentials_file.empty()) {
    return Error{Errc::invalid_argument, "Kafka takes a user and a password, and no other login"};
  }
  const bool login = !security.user.empty();
  if (!login && !security.mechanism.empty()) {
    return Error{Errc::invalid_argument, "a mechanism is given without a user"};
  }
  KafkaProperties properties;
  if (!security.tls && !login) return properties;
  const auto put = [&](const char* name, const std::string& value) {
    if (!value.empty()) properties.emplace_back(name, value);
  };
  put("security.protocol",
      fmt::format("{}{}", login ? "sasl_" : "", security.tls ? "ssl" : "plaintext"));
  if (security.tls) {
    put("ssl.ca.location", security.tls->ca_file);
    put("ssl.certificate.location", security.tls->certificate_file);
    put("ssl.key.location", security.tls->key_file);
  }
  if (login) {
    put("sasl.mechanism", security.mechanism.empty() ? "PLAIN" : security.mechanism);
    put("sasl.username", security.user);
    put("sasl.password", security.password);
  }
  return properties;
}

Result<KafkaConf> make_conf(const KafkaConfParts& given) {
  KafkaConfParts parts = given;
  BATON_TRY(const KafkaProperties secured, security_properties(parts.security));
  parts.fixed.insert(parts.fixed.end(), secured.begin(), secured.end());
  BATON_TRY_STATUS(refuse_fixed(parts));
  KafkaConf conf(rd_kafka_conf_new());
  BATON_TRY_STATUS(set_all(*conf, parts.defaults));
  BATON_TRY_STATUS(set_all(*conf, parts.wanted));
  BATON_TRY_STATUS(set_all(*conf, parts.fixed));
  return conf;
}

Result<KafkaHandle> make_handle(rd_kafka_type_t type, KafkaConf conf) {
  // librdkafka's own log lines would repeat what is logged here once.
  rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t*, int, const char*, const char*) {});
  std::array<char, 512> why{};
  KafkaHandle handle(rd_kafka_new(type, conf.get(), why.data(), why.size()));
  if (handle == nullptr) {
    return Error{Errc::invalid_argument, fmt::format("Kafka's settings: {}", why.data())};
  }
  [[maybe_unused]] const auto* of_the_handle_now = conf.release();
  return handle;
}

std::pair<std::string, std::string> brokers_property(const std::string& brokers) {
  return {std::string(kBrokers), brokers};
}

std::string to_milliseconds(Duration duration) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

int milliseconds_of(Duration duration) {
  const auto count = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(
      std::clamp<std::int64_t>(count, 0, std::numeric_limits<std::int32_t>::max()));
}

bool is_refusal(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED: return true;
    default: return false;
  }
}

Error to_error(rd_kafka_resp_err_t code, std::string_view what) {
  const std::string text = fmt::format("{}: {}", what, rd_kafka_err2str(code));
  if (is_refusal(code)) return {Errc::failed_precondition, text};
  switch (code) {
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART: return {Errc::not_found, text};
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
      return {
          Errc::invalid_argument,
          text + " (the limits: the topic's max.message.bytes, the client's message.max.bytes)"};
    case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
    case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR__INVALID_ARG: return {Errc::invalid_argument, text};
    default: return {Errc::unavailable, text};
  }
}

}  // namespace baton::pipeline
