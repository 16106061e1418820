#pragma once

#include "pipeline/ends/kinds.h"

namespace baton::pipeline {

/// A stream of NATS JetStream, divided into partitions by its subjects.
inline constexpr EndKind kNatsEnd{
    .name = "nats",
    .servers = "nats",
    .schemes = {{{"nats://"}, {"natss://", true}, {"tls://", true}}},  // tls:// as NATS has it.
    .form = "HOST:PORT[,HOST:PORT...]/STREAM/SUBJECT.{partition}",
    .settings = {"source.partitions"},
    .option = "BATON_WITH_NATS"};
extern const SourceKind kNatsSource;

}  // namespace baton::pipeline
