#pragma once

#include <fmt/format.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include "base/result.h"

namespace baton {

/// Parses the message of a raw request; the error names its type.
template <class Message>
Status parse_request(grpc::ByteBuffer& request, Message& message) {
  if (grpc::SerializationTraits<Message>::Deserialize(&request, &message).ok()) return {};
  const std::string& name = Message::descriptor()->name();
  const bool vowel = std::string_view("AEIOU").find(name.front()) != std::string_view::npos;
  return Error{Errc::invalid_argument,
               fmt::format("the request is not {} {}", vowel ? "an" : "a", name)};
}

}  // namespace baton
