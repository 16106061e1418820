#pragma once

#include "pipeline/ends/kinds.h"

namespace baton::pipeline {

/// A Kafka topic.
inline constexpr EndKind kKafkaEnd{
    .name = "kafka",
    .servers = "kafka",
    .schemes = {{{"kafka://"}, {"kafkas://", true}}},
    .form = "HOST:PORT[,HOST:PORT...]/TOPIC",
    .settings = {"source.properties", "source.session_timeout", "id"},
    .option = "BATON_WITH_KAFKA"};
extern const SourceKind kKafkaSource;
extern const DeadLetterKind kKafkaLetters;

}  // namespace baton::pipeline
