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

/// librdkafka's, by their names there.
using KafkaProperties = std::vector<std::pair<std::string, std::string>>;
using KafkaLog = std::function<void(bool warning, const std::string&)>;

struct KafkaConfParts {
  KafkaProperties defaults{};          // Others may be wanted.
  KafkaProperties wanted{};            // By the user.
  KafkaProperties fixed{};             // Wanting them is refused: what is promised hangs on them.
  client::SecurityOptions security{};  // Becomes fixed properties.
};
Result<KafkaConf> make_conf(const KafkaConfParts& parts);

/// security.protocol and what belongs to it; none: plain text and no login, or what the user's own
/// properties say. Fails on a login that Kafka does not have.
Result<KafkaProperties> security_properties(const client::SecurityOptions& security);

/// Of `conf`, which is used up.
Result<KafkaHandle> make_handle(rd_kafka_type_t type, KafkaConf conf);

/// "127.0.0.1:9092,127.0.0.1:9093" is a property like others.
std::pair<std::string, std::string> brokers_property(const std::string& brokers);

std::string to_milliseconds(Duration duration);
/// For librdkafka's time-outs; never negative, which would be "for ever".
int milliseconds_of(Duration duration);

/// With the code that callers act on: unavailable passes, the rest does not.
Error to_error(rd_kafka_resp_err_t code, std::string_view what);
/// No right to it, or no proof of who we are: waiting does not help.
bool is_refusal(rd_kafka_resp_err_t code);

}  // namespace baton::pipeline
