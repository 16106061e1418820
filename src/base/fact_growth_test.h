#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/growing.h"
#include "base/result.h"

/// What every kind of fact must do when a later version says more of it; for the tests of machines.
namespace baton::fact_growth {

template <class Fact>
std::string encoded(const Fact& fact) {
  std::string bytes;
  Encoder out(bytes);
  encode(out, fact);
  return bytes;
}

/// The bytes of a fact whose body has field 99 behind the fields that this version knows.
inline std::string with_field(std::string_view today, Need need) {
  Decoder in(today);
  const FactFrame frame = read_frame(in);
  std::string longer;
  Encoder out(longer);
  out.varint(frame.kind << 3U | frame.owner.value);
  out.blob_of(0, [&] {
    out.raw(frame.body);
    put_field(out, 99, "of a later version", need);
  });
  return longer;
}

/// A field that may be skipped is skipped, and the rest is right.
template <class Fact, class Decode>
void expect_skipped(const Fact& fact, const Decode& decode) {
  const std::string today = encoded(fact);
  for (const std::string& bytes : {today, with_field(today, {})}) {
    Decoder in(bytes);
    const Result<Fact> decoded = decode(in);
    ASSERT_TRUE(decoded.has_value() && in.finish());
    EXPECT_EQ(encoded(*decoded), today);
  }
}

/// A field that must be understood is refused, by its number and the names of fact and machine.
template <class Fact, class Decode>
void expect_refused(const Fact& fact, const FactSet& set, const Decode& decode) {
  const std::string bytes = with_field(encoded(fact), Need{3});
  Decoder in(bytes);
  const Result<Fact> decoded = decode(in);
  ASSERT_FALSE(decoded.has_value());
  EXPECT_EQ(decoded.error().code, Errc::store_too_new);
  const std::string kind(set.kinds[fact.index()]);
  const std::string wanted = "field 99 in a fact '" + kind + "' of the " + std::string(set.name);
  EXPECT_NE(decoded.error().text.find(wanted), std::string::npos) << decoded.error().text;
}

/// A fact that is cut short anywhere is malformed.
template <class Fact, class Decode>
void expect_cut_is_malformed(const Fact& fact, const Decode& decode) {
  const std::string bytes = encoded(fact);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    Decoder in(std::string_view(bytes).substr(0, length));
    EXPECT_FALSE(decode(in).has_value()) << "at " << length;
  }
}

/// A setting that may be skipped is skipped, and one that must be understood is refused as such.
template <class Decode>
void expect_settings_grow(const Decode& decode) {
  const auto with_setting = [](Need need) {
    std::string bytes;
    Encoder out(bytes);
    out.blob_of(0, [&] { put_field(out, 99, "of a later version", need); });
    return bytes;
  };
  const std::string optional = with_setting({});
  Decoder in(optional);
  const auto settings = decode(in);
  EXPECT_TRUE(in.finish());
  EXPECT_EQ(settings, decltype(settings){});

  const std::string required = with_setting(Need{3});
  Decoder strict(required);
  decode(strict);
  EXPECT_FALSE(strict.ok());
  const Error refused = unreadable(strict, Errc::malformed, "a fact");
  EXPECT_EQ(refused.code, Errc::store_too_new);
  EXPECT_TRUE(refused.text.starts_with("field 99 of the settings in a fact")) << refused.text;
}

}  // namespace baton::fact_growth
