#pragma once

#include <memory>

#include <librdkafka/rdkafka.h>

namespace baton::pipeline {

/// Owners of librdkafka's objects. A list that leaks keeps rd_kafka_destroy() waiting for ever.
template <auto Destroy>
struct KafkaDestroy {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};

/// Destroys a handle. A consumer must be closed before; this does not wait for one that is not.
/// From here on librdkafka makes no callback except for the log.
void destroy_kafka(rd_kafka_t* handle);

using KafkaHandle = std::unique_ptr<rd_kafka_t, KafkaDestroy<destroy_kafka>>;
using KafkaConf = std::unique_ptr<rd_kafka_conf_t, KafkaDestroy<rd_kafka_conf_destroy>>;
using KafkaTopic = std::unique_ptr<rd_kafka_topic_t, KafkaDestroy<rd_kafka_topic_destroy>>;
using KafkaQueue = std::unique_ptr<rd_kafka_queue_t, KafkaDestroy<rd_kafka_queue_destroy>>;
using KafkaMessage = std::unique_ptr<rd_kafka_message_t, KafkaDestroy<rd_kafka_message_destroy>>;
using KafkaMetadata =
    std::unique_ptr<const rd_kafka_metadata_t, KafkaDestroy<rd_kafka_metadata_destroy>>;
using KafkaHeaders = std::unique_ptr<rd_kafka_headers_t, KafkaDestroy<rd_kafka_headers_destroy>>;
using KafkaErrorObject = std::unique_ptr<rd_kafka_error_t, KafkaDestroy<rd_kafka_error_destroy>>;
using KafkaNewTopic = std::unique_ptr<rd_kafka_NewTopic_t, KafkaDestroy<rd_kafka_NewTopic_destroy>>;
using KafkaEvent = std::unique_ptr<rd_kafka_event_t, KafkaDestroy<rd_kafka_event_destroy>>;
using KafkaResource =
    std::unique_ptr<rd_kafka_ConfigResource_t, KafkaDestroy<rd_kafka_ConfigResource_destroy>>;
using KafkaAdminOptions =
    std::unique_ptr<rd_kafka_AdminOptions_t, KafkaDestroy<rd_kafka_AdminOptions_destroy>>;
using KafkaPartitionList = std::unique_ptr<rd_kafka_topic_partition_list_t,
                                           KafkaDestroy<rd_kafka_topic_partition_list_destroy>>;

}  // namespace baton::pipeline
