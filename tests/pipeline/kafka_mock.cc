#include "pipeline/kafka_mock.h"

#include "pipeline/kafka/kafka_config.h"

namespace baton::pipeline::kafka_test {

KafkaMock::KafkaMock() {
  KafkaConf conf = make_conf({.wanted = {{"test.mock.num.brokers", "1"}}}).value();
  rd_kafka_conf_set_log_cb(conf.get(), [](const rd_kafka_t*, int, const char*, const char*) {});
  handle_ = make_handle(RD_KAFKA_PRODUCER, std::move(conf)).value();
  cluster_ = rd_kafka_handle_mock_cluster(handle_.get());
}

std::string KafkaMock::brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }

void KafkaMock::create(const std::string& topic, int partitions) {
  (void)rd_kafka_mock_topic_create(cluster_, topic.c_str(), partitions, 1);
}

void KafkaMock::set_down(bool down) {
  (void)(down ? rd_kafka_mock_broker_set_down(cluster_, -1)
              : rd_kafka_mock_broker_set_up(cluster_, -1));
}

void KafkaMock::fail(std::int16_t request, const std::vector<rd_kafka_resp_err_t>& errors) {
  rd_kafka_mock_push_request_errors_array(cluster_, request, errors.size(), errors.data());
}

void KafkaMock::stop_failing(std::int16_t request) {
  rd_kafka_mock_clear_request_errors(cluster_, request);
}

void KafkaMock::set_topic_error(const std::string& topic, rd_kafka_resp_err_t error) {
  rd_kafka_mock_topic_set_error(cluster_, topic.c_str(), error);
}

KafkaSourceOptions source_of(const KafkaMock& mock, const std::string& topic) {
  KafkaSourceOptions options;
  options.brokers = mock.brokers();
  options.topic = topic;
  options.group = "group-" + topic;
  options.session_timeout = seconds(6);
  options.properties = {{"heartbeat.interval.ms", "200"},
                        {"auto.commit.interval.ms", "100"},
                        {"reconnect.backoff.max.ms", "500"}};
  return options;
}

}  // namespace baton::pipeline::kafka_test
