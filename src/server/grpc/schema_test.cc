// Rules of the wire schema that no linter checks.

#include <set>
#include <string>
#include <vector>

#include <baton/v1/admin.pb.h>
#include <baton/v1/error.pb.h>
#include <baton/v1/kv.pb.h>
#include <baton/v1/queues.pb.h>
#include <baton/v1/session.pb.h>
#include <baton/v1/status.pb.h>
#include <baton/v1/streams.pb.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

namespace baton {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

std::vector<const FileDescriptor*> files() {
  return {v1::InspectRequest::descriptor()->file(), v1::Error::descriptor()->file(),
          v1::KvEntry::descriptor()->file(),        v1::Queue::descriptor()->file(),
          v1::Heartbeat::descriptor()->file(),      v1::CallStatus::descriptor()->file(),
          v1::Stream::descriptor()->file()};
}

/// Every message of the schema, including nested ones.
std::vector<const Descriptor*> messages() {
  std::vector<const Descriptor*> all;
  for (const FileDescriptor* file : files()) {
    for (int i = 0; i < file->message_type_count(); ++i) all.push_back(file->message_type(i));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (int j = 0; j < all[i]->nested_type_count(); ++j) all.push_back(all[i]->nested_type(j));
  }
  return all;
}

std::string type_of(const Descriptor& message, const char* field) {
  const FieldDescriptor* const found = message.FindFieldByName(field);
  return found == nullptr ? "none" : found->type_name();
}

// Without these options a client cannot be generated in some languages, or only with flags.
TEST(Schema, EveryFileSaysWhereItsCodeBelongs) {
  for (const FileDescriptor* file : files()) {
    const auto& options = file->options();
    EXPECT_EQ(options.go_package(), "baton/v1;batonv1") << file->name();
    EXPECT_EQ(options.java_package(), "baton.v1") << file->name();
    EXPECT_TRUE(options.java_multiple_files()) << file->name();
    EXPECT_EQ(options.csharp_namespace(), "Baton.V1") << file->name();
    EXPECT_EQ(options.php_namespace(), "Baton\\V1") << file->name();
    EXPECT_EQ(options.ruby_package(), "Baton::V1") << file->name();
  }
}

// A list without pages can grow beyond what a client accepts in one message.
TEST(Schema, EveryListHasPages) {
  int lists = 0;
  for (const FileDescriptor* file : files()) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        const auto* const method = file->service(i)->method(j);
        if (!method->name().starts_with("List")) continue;
        ++lists;
        EXPECT_EQ(type_of(*method->input_type(), "page_size"), "int32") << method->full_name();
        EXPECT_EQ(type_of(*method->input_type(), "page_token"), "string") << method->full_name();
        EXPECT_EQ(type_of(*method->output_type(), "next_page_token"), "string")
            << method->full_name();
      }
    }
  }
  EXPECT_EQ(lists, 5);
}

// Integers are for fields that go over the wire once for each message or record.
TEST(Schema, TimesAreWellKnownTypesButForTheHotPath) {
  const std::set<std::string> hot{"NewMessage", "LeasedMessage", "NackItem",
                                  "ExtendItem", "NewRecord",     "Record"};
  for (const Descriptor* message : messages()) {
    for (int i = 0; i < message->field_count(); ++i) {
      const std::string& name = message->field(i)->name();
      const bool has_unit = name.ends_with("_ms") || name.ends_with("_us") || name.ends_with("_ns");
      EXPECT_TRUE(!has_unit || hot.contains(message->name())) << message->field(i)->full_name();
    }
  }
}

TEST(Schema, BoundsEndInMax) {
  for (const Descriptor* message : messages()) {
    for (int i = 0; i < message->field_count(); ++i) {
      const std::string& name = message->field(i)->name();
      EXPECT_FALSE(name == "max" || name.starts_with("max_")) << message->field(i)->full_name();
    }
  }
}

// Tools read the details of a status as this message; Baton's must be the same on the wire.
TEST(Schema, ACallStatusIsLikeGoogleRpcStatus) {
  const Descriptor& status = *v1::CallStatus::descriptor();
  ASSERT_EQ(status.field_count(), 3);
  EXPECT_EQ(status.FindFieldByNumber(1)->type(), FieldDescriptor::TYPE_INT32);
  EXPECT_EQ(status.FindFieldByNumber(2)->type(), FieldDescriptor::TYPE_STRING);
  EXPECT_EQ(status.FindFieldByNumber(3)->message_type()->full_name(), "google.protobuf.Any");
  EXPECT_TRUE(status.FindFieldByNumber(3)->is_repeated());
}

}  // namespace
}  // namespace baton
