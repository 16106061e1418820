#include "server/session/operations.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <baton/v1/admin.pb.h>
#include <baton/v1/kv.pb.h>
#include <baton/v1/queues.pb.h>
#include <baton/v1/streams.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "server/app/service_fixture.h"

namespace baton {
namespace {

using google::protobuf::MethodDescriptor;

class OperationsTest : public ServiceTest {
 protected:
  static std::vector<const MethodDescriptor*> methods() {
    std::vector<const MethodDescriptor*> all;
    for (const auto* file :
         {v1::EnqueueRequest::descriptor()->file(), v1::AppendRequest::descriptor()->file(),
          v1::PutKeyRequest::descriptor()->file(), v1::InspectRequest::descriptor()->file()}) {
      for (int service = 0; service < file->service_count(); ++service) {
        for (int i = 0; i < file->service(service)->method_count(); ++i) {
          all.push_back(file->service(service)->method(i));
        }
      }
    }
    return all;
  }
  static const OperationInfo* row_of(const MethodDescriptor& method) {
    const auto row = std::ranges::find(kOperations, method.name(), &OperationInfo::name);
    return row == kOperations.end() ? nullptr : &*row;
  }

  /// Calls the method with an empty request, as a client in any language would, until its end.
  void call(const MethodDescriptor& method) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{20});
    grpc::CompletionQueue queue;
    const auto done = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok));
      return ok;
    };
    const std::string path = "/" + method.service()->full_name() + "/" + method.name();
    grpc::GenericStub stub(channel_);
    const auto stream = stub.PrepareCall(&context, path, &queue);
    stream->StartCall(nullptr);
    done();
    // An empty message is valid as a request of every type.
    const grpc::Slice nothing;
    if (!method.client_streaming()) {
      stream->Write(grpc::ByteBuffer(&nothing, 1), nullptr);
      done();
    }
    stream->WritesDone(nullptr);
    done();
    grpc::ByteBuffer answer;
    do {
      stream->Read(&answer, nullptr);
    } while (done());
    grpc::Status status;
    stream->Finish(&status, nullptr);
    done();
    EXPECT_NE(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << path;
    EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << path;
  }
  /// How many calls of each method have ended, by /metrics.
  std::map<std::string, int> ended() {
    const std::string text = httplib::Client("127.0.0.1", api_->http_port()).Get("/metrics")->body;
    const std::string line = "\nbaton_api_calls_total{method=\"";
    std::map<std::string, int> counts;
    for (std::size_t at = text.find(line); at != std::string::npos; at = text.find(line, at + 1)) {
      const std::size_t name = at + line.size();
      const std::size_t number = text.find("} ", name) + 2;
      counts[text.substr(name, text.find('"', name) - name)] += std::stoi(text.substr(number));
    }
    return counts;
  }

  std::shared_ptr<grpc::Channel> channel_ = make_channel();
};

TEST_F(OperationsTest, EveryMethodOfTheWireIsARowOfTheTable) {
  std::set<std::string_view> named;
  for (const MethodDescriptor* method : methods()) {
    const OperationInfo* const row = row_of(*method);
    ASSERT_NE(row, nullptr) << method->full_name() << " is not in operations.def";
    named.insert(row->name);
    const bool streams = method->client_streaming() || method->server_streaming();
    EXPECT_EQ(row->shape, streams ? Shape::session : Shape::call) << method->full_name();
  }
  EXPECT_EQ(named.size(), kOperations.size()) << "a row that no method is for";
}

// A method without a RunningOperation would not be counted, nor checked for a permission.
TEST_F(OperationsTest, EveryMethodPassesTheTableUnderItsOwnName) {
  broker_.set_refusing(true);
  std::map<std::string, int> expected;
  for (const MethodDescriptor* method : methods()) {
    const OperationInfo* const row = row_of(*method);
    ASSERT_NE(row, nullptr) << method->full_name();
    call(*method);
    ++expected[std::string(row->name)];
    ASSERT_EQ(ended(), expected) << "after " << method->full_name();
  }
}

}  // namespace
}  // namespace baton
