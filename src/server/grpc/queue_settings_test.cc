#include "server/grpc/queue_settings.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/queue/format_samples.h"

namespace baton {
namespace {

// A setting of core's table without a field, or a field without a setting, would be lost silently.
TEST(QueueSettingsOnTheWire, EverySettingHasItsFieldAndEveryFieldItsSetting) {
  std::set<int> numbers{14, 15};  // Weights and throttles are maps.
  for_each_queue_setting([&]<class T>(const QueueSetting<T>& setting) {
    const auto number = static_cast<int>(setting.number);
    const auto* const field = v1::QueueSettings::descriptor()->FindFieldByNumber(number);
    ASSERT_NE(field, nullptr) << setting.name;
    EXPECT_EQ(field->name(), setting.name);
    EXPECT_TRUE(numbers.insert(number).second) << setting.name;
  });
  EXPECT_EQ(static_cast<int>(numbers.size()), v1::QueueSettings::descriptor()->field_count());
}

TEST(QueueSettingsOnTheWire, WhatIsDescribedIsTakenBackAsItWas) {
  for (const QueueSettings& settings : {QueueSettings{}, format_samples::settings()}) {
    v1::QueueSettings wire;
    describe_settings(settings, wire);
    const Result<QueueSettingsPatch> patch = convert_settings(wire);
    ASSERT_TRUE(patch.has_value()) << to_string(patch.error());
    EXPECT_EQ(patched({}, *patch), settings);
  }
}

TEST(QueueSettingsOnTheWire, AbsentSettingsAreAbsent) {
  EXPECT_EQ(convert_settings({}).value(), QueueSettingsPatch{});
}

}  // namespace
}  // namespace baton
