#pragma once

// All of the SDK.
#include <baton/broker.h>           // IWYU pragma: export
#include <baton/bucket_handle.h>    // IWYU pragma: export
#include <baton/connection.h>       // IWYU pragma: export
#include <baton/consumer.h>         // IWYU pragma: export
#include <baton/kv.h>               // IWYU pragma: export
#include <baton/lease_stream.h>     // IWYU pragma: export
#include <baton/message.h>          // IWYU pragma: export
#include <baton/numbers.h>          // IWYU pragma: export
#include <baton/producer.h>         // IWYU pragma: export
#include <baton/queue.h>            // IWYU pragma: export
#include <baton/queue_handle.h>     // IWYU pragma: export
#include <baton/result.h>           // IWYU pragma: export
#include <baton/stream.h>           // IWYU pragma: export
#include <baton/stream_consumer.h>  // IWYU pragma: export
#include <baton/stream_handle.h>    // IWYU pragma: export
#include <baton/stream_producer.h>  // IWYU pragma: export
#include <baton/worker.h>           // IWYU pragma: export
