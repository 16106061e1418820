#include "pipeline/http/http_errors.h"

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

using flow::ErrorClass;

TEST(HttpErrors, HaveAClass) {
  for (const int status : {0, 502, 503, 504, 507}) {
    EXPECT_EQ(class_of_http(status), ErrorClass::outage) << status;
  }
  for (const int status : {500, 501, 505}) {
    EXPECT_EQ(class_of_http(status), ErrorClass::unknown) << status;
  }
  for (const int status : {301, 302, 304, 307, 308}) {
    EXPECT_EQ(class_of_http(status), ErrorClass::config) << status;
  }
  EXPECT_EQ(class_of_http(429), ErrorClass::retry);
  EXPECT_EQ(class_of_http(401), ErrorClass::config);
  EXPECT_EQ(class_of_http(404), ErrorClass::config);
  EXPECT_EQ(class_of_http(409), ErrorClass::duplicate);
  EXPECT_EQ(class_of_http(422), ErrorClass::poison);
}

}  // namespace
}  // namespace baton::pipeline
