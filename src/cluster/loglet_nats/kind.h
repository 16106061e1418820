#pragma once

#include "cluster/loglet/engine.h"

namespace baton::loglet {

/// NATS JetStream: a stream for each shard's log, and a bucket for what all nodes know.
extern const EngineAdapter kNatsEngine;

}  // namespace baton::loglet
