#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/security.h>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/kafka/kafka_handles.h"

namespace baton::pipeline {

/// librdkafka's properties, by librdkafka's names.
using KafkaProperties = std::vector<std::pair<std::string, std::string>>;
using KafkaLog = std::function<void(bool warning, const std::string&)>;

struct KafkaConfParts {
  KafkaProperties defaults{};  // The user may override these.
  KafkaProperties wanted{};    // Set by the user.
  // The user may not set these, because the pipeline's promises depend on them.
  KafkaProperties fixed{};
  client::SecurityOptions security{};  // Converted to fixed properties.
};
Result<KafkaConf> make_conf(const KafkaConfParts& parts);

/// security.protocol and related properties. Empty: plain text without a login, or what the user's
/// own properties say. Fails on a login that Kafka does not have.
Result<KafkaProperties> security_properties(const client::SecurityOptions& security);

/// Makes a handle from `conf`, which is consumed.
Result<KafkaHandle> make_handle(rd_kafka_type_t type, KafkaConf conf);

/// The property for "127.0.0.1:9092,127.0.0.1:9093".
std::pair<std::string, std::string> brokers_property(const std::string& brokers);

std::string to_milliseconds(Duration duration);
/// For librdkafka's timeouts; never negative, which would mean "for ever".
int milliseconds_of(Duration duration);

/// Converts an error, with a code that callers act on: unavailable passes by itself, others do not.
Error to_error(rd_kafka_resp_err_t code, std::string_view what);
/// Whether the brokers refuse access or the login: waiting does not help.
bool is_refusal(rd_kafka_resp_err_t code);

}  // namespace baton::pipeline
