#pragma once

#include "pipeline/ends/kinds.h"

namespace baton::pipeline {

/// A NATS JetStream stream, divided into partitions by its subjects.
inline constexpr EndKind kNatsEnd{
    .name = "nats",
    .servers = "nats",
    .schemes = {{{"nats://"}, {"natss://", true}, {"tls://", true}}},  // tls:// is NATS's own.
    .form = "HOST:PORT[,HOST:PORT...]/STREAM/SUBJECT.{partition}",
    .settings = {"source.partitions"},
    .option = "BATON_WITH_NATS"};
extern const SourceKind kNatsSource;

}  // namespace baton::pipeline
