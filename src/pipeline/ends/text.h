#pragma once

#include <string_view>

namespace baton::pipeline {

/// Whether it is UTF-8: neither protobuf nor JSON takes another string.
bool is_text(std::string_view bytes);

}  // namespace baton::pipeline
