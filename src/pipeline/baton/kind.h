#pragma once

#include "pipeline/ends/kinds.h"

namespace baton::pipeline {

/// A stream of a Baton broker.
inline constexpr EndKind kStreamEnd{.name = "baton-stream",
                                    .servers = "baton",
                                    .schemes = {{{"baton-stream://"},
                                                 {"batons-stream://", true},
                                                 {"baton://"},
                                                 {"batons://", true}}},
                                    .form = "HOST:PORT/STREAM",
                                    .is_broker = true};
extern const SourceKind kStreamSource;

/// A queue of a Baton broker.
inline constexpr EndKind kQueueEnd{.name = "baton-queue",
                                   .servers = "baton",
                                   .schemes = {{{"baton-queue://"}, {"batons-queue://", true}}},
                                   .form = "HOST:PORT/QUEUE",
                                   .is_broker = true};
extern const SourceKind kQueueSource;
extern const DeadLetterKind kQueueLetters;

}  // namespace baton::pipeline
