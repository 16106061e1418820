#pragma once

#include <string_view>

namespace baton::pipeline {

/// Whether `bytes` are UTF-8: neither protobuf nor JSON takes any other string.
bool is_text(std::string_view bytes);

}  // namespace baton::pipeline
